//! Proofs of spacetime over sealed sectors.

use anyhow::Result;
use filecoin_proofs::{
    DefaultTreeDomain, PoStConfig, PoStType, PrivateReplicaInfo, SECTOR_SIZE_2_KIB,
    WINDOW_POST_CHALLENGE_COUNT, WINDOW_POST_SECTOR_COUNT, WINNING_POST_CHALLENGE_COUNT,
    WINNING_POST_SECTOR_COUNT, as_safe_commitment, parameters,
};
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::{self, CompoundProof};
use storage_proofs_core::multi_proof::MultiProof;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_post::fallback::{
    ChallengeRequirements, FallbackPoSt, FallbackPoStCircuit, FallbackPoStCompound, PrivateInputs,
    PrivateSector, PublicInputs, PublicSector, SetupParams,
};

use crate::compare::{Case, Partition, Proofs};
use crate::sector::{Sector, Tree};

pub type Circuit = FallbackPoStCircuit<Tree>;

fn config(typ: PoStType, challenge_count: usize, sector_count: usize) -> PoStConfig {
    PoStConfig {
        sector_size: SECTOR_SIZE_2_KIB.into(),
        challenge_count,
        sector_count,
        typ,
        priority: false,
        api_version: ApiVersion::V1_2_0,
    }
}

/// One sector, challenged in many places: one partition.
pub fn winning(sector: &Sector) -> Result<Case<Circuit>> {
    let config = config(
        PoStType::Winning,
        WINNING_POST_CHALLENGE_COUNT,
        WINNING_POST_SECTOR_COUNT,
    );
    let setup = parameters::winning_post_setup_params(&config)?;
    // The circuit sees a sector of its own in every challenge.
    let sectors = vec![sector; setup.sector_count];
    post("WinningPoSt, a 2 KiB sector", &config, setup, &sectors)
}

/// Many sectors, some to a partition.
pub fn window(sectors: &[Sector]) -> Result<Case<Circuit>> {
    let count = *WINDOW_POST_SECTOR_COUNT
        .read()
        .expect("nobody panics with it")
        .get(&SECTOR_SIZE_2_KIB)
        .expect("a size that there is");
    let config = config(PoStType::Window, WINDOW_POST_CHALLENGE_COUNT, count);
    let setup = parameters::window_post_setup_params(&config);
    let sectors: Vec<&Sector> = sectors.iter().collect();
    post("WindowPoSt, 2 KiB sectors", &config, setup, &sectors)
}

fn post(
    name: &'static str,
    config: &PoStConfig,
    setup: SetupParams,
    sectors: &[&Sector],
) -> Result<Case<Circuit>> {
    type Compound = FallbackPoStCompound<Tree>;
    type Scheme<'a> = FallbackPoSt<'a, Tree>;

    let partitions = sectors.len().div_ceil(setup.sector_count);
    let minimum_challenge_count = setup.sector_count * setup.challenge_count * partitions;
    let setup = compound_proof::SetupParams {
        vanilla_params: setup,
        partitions: Some(partitions),
        priority: false,
    };
    let params = <Compound as CompoundProof<Scheme<'_>, Circuit>>::setup(&setup)?;
    let vanilla = &params.vanilla_params;

    let replicas = sectors
        .iter()
        .map(|sector| {
            PrivateReplicaInfo::<Tree>::new(
                sector.replica.clone(),
                sector.comm_r,
                sector.cache.clone(),
            )
        })
        .collect::<Result<Vec<_>>>()?;
    let trees = replicas
        .iter()
        .map(|replica| replica.merkle_tree(config.sector_size))
        .collect::<Result<Vec<_>>>()?;
    let private: Vec<PrivateSector<'_, Tree>> = replicas
        .iter()
        .zip(&trees)
        .map(|(replica, tree)| PrivateSector {
            tree,
            comm_c: replica.safe_comm_c(),
            comm_r_last: replica.safe_comm_r_last(),
        })
        .collect();
    let public = PublicInputs::<DefaultTreeDomain> {
        randomness: as_safe_commitment(&[5; 32], "randomness")?,
        prover_id: as_safe_commitment(&sectors[0].prover_id, "prover_id")?,
        sectors: sectors
            .iter()
            .zip(&replicas)
            .map(|(sector, replica)| {
                Ok(PublicSector {
                    id: sector.id,
                    comm_r: replica.safe_comm_r()?,
                })
            })
            .collect::<Result<_>>()?,
        k: None,
    };
    let proofs = Scheme::prove_all_partitions(
        vanilla,
        &public,
        &PrivateInputs { sectors: &private },
        partitions,
    )?;
    let partitions = proofs
        .iter()
        .enumerate()
        .map(|(k, proof)| {
            let private = Default::default();
            Ok(Partition {
                circuit: Compound::circuit(&public, private, proof, vanilla, Some(k))?,
                public: Compound::generate_public_inputs(&public, vanilla, Some(k))?,
            })
        })
        .collect::<Result<_>>()?;
    let requirements = ChallengeRequirements {
        minimum_challenge_count,
    };
    let blank = Compound::blank_circuit(vanilla);
    Ok(Case {
        name,
        blank,
        partitions,
        verify: Box::new(move |proofs: Proofs, key| {
            let proofs = MultiProof::new(proofs, key);
            Compound::verify(&params, &public, &proofs, &requirements)
        }),
    })
}
