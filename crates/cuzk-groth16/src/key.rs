//! A key as the prover sees it: borrowed, whatever types its points are held in.

use cuzk_field::{Fp, Fp2, G1Affine};
use cuzk_formats::prepared::{PreparedFile, PreparedKey};
use cuzk_formats::{KeyFlavour, ProvingKey, QueryLayout, QueryVariables, VerifyingKey};
use cuzk_msm::Bases;

use crate::error::Error;

/// A borrowed proving key. Made from a [`ProvingKey`] or [`PreparedKey`], or by an adapter from another library's key
/// without copying its queries.
#[derive(Clone)]
pub struct KeyRef<'a> {
    /// Roots of unity and H basis.
    pub flavour: KeyFlavour,
    /// n.
    pub domain_size: usize,
    /// The verifying key.
    pub vk: VerifyingKey,
    /// beta in G1.
    pub beta_g1: G1Affine,
    /// delta in G1.
    pub delta_g1: G1Affine,
    /// Which variables the A and B queries cover.
    pub query_layout: QueryLayout,
    /// The variables of a compact key's queries where the key itself has them, as prepared keys do; else
    /// they are known from the circuit.
    pub variables: Option<&'a QueryVariables>,
    /// A in G1.
    pub a_query: &'a dyn Bases<Fp>,
    /// B in G1.
    pub b_g1_query: &'a dyn Bases<Fp>,
    /// B in G2.
    pub b_g2_query: &'a dyn Bases<Fp2>,
    /// H.
    pub h_query: &'a dyn Bases<Fp>,
    /// L, one point per variable from `flavour.first_in_l(num_inputs)` on.
    pub l_query: &'a dyn Bases<Fp>,
}

/// A key but for the points of its queries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyHeader {
    /// Roots of unity and H basis.
    pub flavour: KeyFlavour,
    /// n.
    pub domain_size: usize,
    /// The verifying key.
    pub vk: VerifyingKey,
    /// beta in G1.
    pub beta_g1: G1Affine,
    /// delta in G1.
    pub delta_g1: G1Affine,
    /// Which variables the A and B queries cover.
    pub query_layout: QueryLayout,
    /// All variables, ONE included.
    pub num_variables: usize,
    /// Points of the A query.
    pub points_in_a: usize,
    /// Points of each B query.
    pub points_in_b: usize,
}

impl KeyHeader {
    /// That of a prepared key, whether the points of its queries were read or not.
    pub fn of_prepared(file: &PreparedFile) -> Self {
        let key = &file.key.key;
        let [points_in_a, points_in_b] = file.header.num_points.map(|points| points as usize);
        Self {
            flavour: key.flavour,
            domain_size: key.domain_size,
            vk: key.vk.clone(),
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            query_layout: key.query_layout,
            num_variables: file.header.num_variables as usize,
            points_in_a,
            points_in_b,
        }
    }

    /// The first variable that L has a point for.
    pub fn first_in_l(&self) -> usize {
        self.flavour.first_in_l(self.num_inputs())
    }

    /// Inputs, ONE included.
    pub fn num_inputs(&self) -> usize {
        self.vk.gamma_abc_g1.len()
    }
}

impl<'a> From<&'a ProvingKey> for KeyRef<'a> {
    fn from(key: &'a ProvingKey) -> Self {
        Self {
            flavour: key.flavour,
            domain_size: key.domain_size,
            vk: key.vk.clone(),
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            query_layout: key.query_layout,
            variables: None,
            a_query: &key.a_query,
            b_g1_query: &key.b_g1_query,
            b_g2_query: &key.b_g2_query,
            h_query: &key.h_query,
            l_query: &key.l_query,
        }
    }
}

impl<'a> From<&'a PreparedKey> for KeyRef<'a> {
    fn from(prepared: &'a PreparedKey) -> Self {
        Self {
            variables: Some(&prepared.variables),
            ..(&prepared.key).into()
        }
    }
}

impl KeyRef<'_> {
    /// All but the queries.
    pub fn header(&self) -> KeyHeader {
        KeyHeader {
            flavour: self.flavour,
            domain_size: self.domain_size,
            vk: self.vk.clone(),
            beta_g1: self.beta_g1,
            delta_g1: self.delta_g1,
            query_layout: self.query_layout,
            num_variables: self.num_variables(),
            points_in_a: self.a_query.len(),
            points_in_b: self.b_g1_query.len(),
        }
    }

    /// Inputs, ONE included.
    pub fn num_inputs(&self) -> usize {
        self.vk.gamma_abc_g1.len()
    }

    /// All variables, ONE included.
    pub fn num_variables(&self) -> usize {
        self.first_in_l() + self.l_query.len()
    }

    /// The first variable that L has a point for.
    pub(crate) fn first_in_l(&self) -> usize {
        self.flavour.first_in_l(self.num_inputs())
    }

    /// Holds the lengths against each other and the vital points against infinity: an MSM that
    /// stopped at the shorter of two lists would give a well-formed, invalid proof.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let fault = |what: String| Err(Error::Key { what });
        let n = self.domain_size;
        if !n.is_power_of_two() {
            return fault(format!("its domain of {n} is not a power of two"));
        }
        if self.num_inputs() == 0 {
            return fault("it has no inputs, not even the constant ONE".into());
        }
        let variables = self.num_variables();
        if variables < self.num_inputs() {
            return fault(format!(
                "L has {} points for {variables} variables, of which {} are inputs",
                self.l_query.len(),
                self.num_inputs()
            ));
        }
        let lengths = [
            ("H", self.h_query.len(), self.flavour.h_len(n)),
            ("B in G1", self.b_g1_query.len(), self.b_g2_query.len()),
        ];
        for (name, found, expected) in lengths {
            if found != expected {
                return fault(format!("{name} has {found} points, expected {expected}"));
            }
        }
        for (name, found) in [("A", self.a_query.len()), ("B", self.b_g1_query.len())] {
            let fits = match self.query_layout {
                QueryLayout::Full => found == variables,
                QueryLayout::Compact => found <= variables,
            };
            if !fits {
                return fault(format!(
                    "{name} has {found} points for {variables} variables"
                ));
            }
        }
        let vital = [
            ("alpha in G1", self.vk.alpha_g1.is_infinity()),
            ("beta in G1", self.beta_g1.is_infinity()),
            ("beta in G2", self.vk.beta_g2.is_infinity()),
            ("gamma in G2", self.vk.gamma_g2.is_infinity()),
            ("delta in G1", self.delta_g1.is_infinity()),
            ("delta in G2", self.vk.delta_g2.is_infinity()),
        ];
        match vital.iter().find(|(_, is_infinity)| *is_infinity) {
            Some((name, _)) => fault(format!("{name} is the point at infinity")),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for KeyRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRef")
            .field("flavour", &self.flavour)
            .field("domain_size", &self.domain_size)
            .field("num_inputs", &self.num_inputs())
            .field("num_variables", &self.num_variables())
            .finish_non_exhaustive()
    }
}
