//! A sealed sector and its PoRep.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use filecoin_proofs::{
    Commitment, DefaultPieceHasher, PaddedBytesAmount, PoRepConfig, PoRepProofPartitions, ProverId,
    SECTOR_SIZE_2_KIB, SealCommitPhase1Output, SectorShape2KiB, add_piece, as_safe_commitment,
    generate_piece_commitment, parameters, seal_commit_phase1, seal_pre_commit_phase1,
    seal_pre_commit_phase2,
};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::{self, CompoundProof};
use storage_proofs_core::multi_proof::MultiProof;
use storage_proofs_core::sector::SectorId;
use storage_proofs_porep::stacked::{
    ChallengeRequirements, PublicInputs, StackedCircuit, StackedCompound, StackedDrg, Tau,
};
use tempfile::TempDir;

use crate::compare::{Case, Partition, Proofs};

pub type Tree = SectorShape2KiB;

/// A folder that Filecoin's code works in: its caches of the graph would otherwise go to a folder of the system.
pub struct Workplace(TempDir);

impl Workplace {
    pub fn new() -> Result<Self> {
        let dir = TempDir::new()?;
        let settings = "parent_cache = \"parents\"\nparameter_cache = \"parameters\"\n";
        fs::write(dir.path().join("rust-fil-proofs.config.toml"), settings)?;
        std::env::set_current_dir(dir.path())?;
        Ok(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

pub fn config(partitions: u8) -> PoRepConfig {
    let mut config = PoRepConfig::new_groth16(SECTOR_SIZE_2_KIB, [9; 32], ApiVersion::V1_2_0);
    config.partitions = PoRepProofPartitions(partitions);
    config
}

/// A sector full of random bytes, sealed and ready for the proof of its replication.
pub struct Sector {
    pub id: SectorId,
    pub prover_id: ProverId,
    pub replica: PathBuf,
    pub cache: PathBuf,
    pub comm_r: Commitment,
    commit: SealCommitPhase1Output<Tree>,
}

impl Sector {
    pub fn seal(place: &Workplace, config: &PoRepConfig, seed: u64) -> Result<Self> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut element = || {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            // Below r.
            bytes[31] &= 0x3f;
            bytes
        };
        let (prover_id, ticket, challenge) = (element(), element(), element());
        let id = SectorId::from(seed);
        let dir = place.path().join(format!("sector-{seed}"));
        let (cache, staged, replica) = (dir.join("cache"), dir.join("staged"), dir.join("replica"));
        fs::create_dir_all(&cache)?;

        let size = config.unpadded_bytes_amount();
        let mut bytes = vec![0; usize::from(PaddedBytesAmount::from(config.sector_size))];
        bytes.truncate(u64::from(size) as usize);
        rng.fill_bytes(&mut bytes);
        let pieces = [generate_piece_commitment(&bytes[..], size)?];
        add_piece(&bytes[..], File::create(&staged)?, size, &[])?;
        File::create(&replica)?;

        let labels = seal_pre_commit_phase1::<_, _, _, Tree>(
            config, &cache, &staged, &replica, prover_id, id, ticket, &pieces,
        )?;
        let sealed = seal_pre_commit_phase2(config, labels, &cache, &replica)?;
        let comm_r = sealed.comm_r;
        let commit = seal_commit_phase1::<_, Tree>(
            config, &cache, &replica, prover_id, id, ticket, challenge, sealed, &pieces,
        )?;
        Ok(Self {
            id,
            prover_id,
            replica,
            cache,
            comm_r,
            commit,
        })
    }
}

/// The PoRep's circuits, one for each partition.
pub fn porep(
    config: &PoRepConfig,
    sector: &Sector,
) -> Result<Case<StackedCircuit<Tree, DefaultPieceHasher>>> {
    type Compound = StackedCompound<Tree, DefaultPieceHasher>;
    type Scheme<'a> = StackedDrg<'a, Tree, DefaultPieceHasher>;
    type Circuit = StackedCircuit<Tree, DefaultPieceHasher>;

    let setup = compound_proof::SetupParams {
        vanilla_params: parameters::setup_params(config)?,
        partitions: Some(usize::from(config.partitions)),
        priority: false,
    };
    let params = <Compound as CompoundProof<Scheme<'_>, Circuit>>::setup(&setup)?;
    let vanilla = &params.vanilla_params;
    let commit = &sector.commit;
    let public = PublicInputs {
        replica_id: commit.replica_id,
        tau: Some(Tau {
            comm_d: as_safe_commitment(&commit.comm_d, "comm_d")?,
            comm_r: as_safe_commitment(&commit.comm_r, "comm_r")?,
        }),
        k: None,
        seed: Some(commit.seed),
    };
    let partition = |(k, proof)| {
        Ok(Partition {
            circuit: Compound::circuit(&public, (), proof, vanilla, Some(k))?,
            public: Compound::generate_public_inputs(&public, vanilla, Some(k))?,
        })
    };
    let partitions: Vec<Partition<Circuit>> = commit
        .vanilla_proofs
        .iter()
        .enumerate()
        .map(partition)
        .collect::<Result<_>>()?;
    ensure!(partitions.len() == usize::from(config.partitions));
    let requirements = ChallengeRequirements {
        minimum_challenges: config.minimum_challenges(),
    };
    let blank = Compound::blank_circuit(vanilla);
    Ok(Case {
        name: "PoRep of a 2 KiB sector",
        blank,
        partitions,
        verify: Box::new(move |proofs: Proofs, key| {
            let proofs = MultiProof::new(proofs, key);
            Compound::verify(&params, &public, &proofs, &requirements)
        }),
    })
}
