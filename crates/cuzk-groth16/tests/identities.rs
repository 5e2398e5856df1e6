//! The identities of `docs/groth16.md` over exponents: a point is replaced by its logarithm, every sum is
//! by definition, and nothing of the crate but the field and the roots of unity is used.

use cuzk_field::{Field as _, Fr, RootGenerator};

const FAMILIES: [RootGenerator; 2] = [RootGenerator::Five, RootGenerator::Seven];

/// Distinct full-size values.
fn values(count: usize, seed: u64) -> Vec<Fr> {
    (0..count as u64)
        .map(|i| Fr::from(seed * 1000 + i + 2).pow(0x1_0000_0001_0001))
        .collect()
}

fn inverse(value: Fr) -> Fr {
    value.inverse().unwrap()
}

/// sum_i base^(ij) values_i for every j.
fn powers_sum(values: &[Fr], base: Fr) -> Vec<Fr> {
    (0..values.len() as u64)
        .map(|j| evaluate(values, base.pow(j)))
        .collect()
}

fn evaluate(coefficients: &[Fr], x: Fr) -> Fr {
    coefficients
        .iter()
        .rev()
        .fold(Fr::ZERO, |sum, c| sum * x + *c)
}

fn dot(a: &[Fr], b: &[Fr]) -> Fr {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(Fr::ZERO, |sum, (a, b)| sum + *a * *b)
}

/// A setup over a domain of n, and rows that satisfy a b = c.
struct Setup {
    n: usize,
    w: Fr,
    /// The 2n-th root whose square is w.
    half: Fr,
    tau: Fr,
    delta: Fr,
    a: Vec<Fr>,
    b: Vec<Fr>,
    c: Vec<Fr>,
}

impl Setup {
    fn new(family: RootGenerator, log_n: u32) -> Self {
        let n = 1 << log_n;
        let (a, b) = (values(n, 1), values(n, 2));
        let c = a.iter().zip(&b).map(|(a, b)| *a * *b).collect();
        let [tau, delta] = values(2, 3)[..] else {
            unreachable!()
        };
        Self {
            n,
            w: family.root_of_unity(log_n).unwrap(),
            half: family.root_of_unity(log_n + 1).unwrap(),
            tau,
            delta,
            a,
            b,
            c,
        }
    }

    fn size(&self) -> Fr {
        Fr::from(self.n as u64)
    }

    /// Coefficients of the interpolant of values on the domain.
    fn interpolant(&self, values: &[Fr]) -> Vec<Fr> {
        let sums = powers_sum(values, inverse(self.w));
        sums.iter().map(|x| *x * inverse(self.size())).collect()
    }

    /// Values of that interpolant at g w^j.
    fn on_coset(&self, values: &[Fr], g: Fr) -> Vec<Fr> {
        let coefficients = self.interpolant(values);
        (0..self.n as u64)
            .map(|j| evaluate(&coefficients, g * self.w.pow(j)))
            .collect()
    }

    fn z_at_tau(&self) -> Fr {
        self.tau.pow(self.n as u64) - Fr::ONE
    }

    /// (a b - c)(tau) / delta: what the H sum has to be.
    fn wanted(&self) -> Fr {
        let at_tau = |values: &[Fr]| evaluate(&self.interpolant(values), self.tau);
        (at_tau(&self.a) * at_tau(&self.b) - at_tau(&self.c)) * inverse(self.delta)
    }

    /// tau^i Z(tau) / delta for i below n - 1.
    fn tau_power_h(&self) -> Vec<Fr> {
        let first = self.z_at_tau() * inverse(self.delta);
        (0..self.n as u64 - 1)
            .map(|i| first * self.tau.pow(i))
            .collect()
    }

    /// L_(2j+1)(tau) / delta in the domain of 2n.
    fn odd_lagrange_h(&self) -> Vec<Fr> {
        let two_n = 2 * self.n as u64;
        let scale = (self.tau.pow(two_n) - Fr::ONE) * inverse(Fr::from(two_n) * self.delta);
        (0..self.n as u64)
            .map(|j| self.half.pow(2 * j + 1))
            .map(|root| scale * root * inverse(self.tau - root))
            .collect()
    }

    /// (a b)(g w^j).
    fn products(&self, g: Fr) -> Vec<Fr> {
        let (a, b) = (self.on_coset(&self.a, g), self.on_coset(&self.b, g));
        a.iter().zip(&b).map(|(a, b)| *a * *b).collect()
    }

    /// Shifts g with g^n other than one.
    fn shifts(&self) -> [Fr; 4] {
        [self.half, Fr::from(5), Fr::from(7), values(1, 9)[0]]
    }

    /// The closed forms of P and Q: l_j(tau) f and L_k(tau) f with f = Z(tau) / (z delta).
    fn closed_form(&self, g: Fr) -> (Vec<Fr>, Vec<Fr>) {
        let z = g.pow(self.n as u64) - Fr::ONE;
        let f = self.z_at_tau() * inverse(z * self.delta);
        let lagrange = |x: Fr| -> Vec<Fr> {
            let scale = (x.pow(self.n as u64) - Fr::ONE) * inverse(self.size());
            (0..self.n as u64)
                .map(|k| self.w.pow(k))
                .map(|root| scale * root * inverse(x - root) * f)
                .collect()
        };
        (lagrange(self.tau * inverse(g)), lagrange(self.tau))
    }
}

fn each_setup(check: impl Fn(&Setup)) {
    for family in FAMILIES {
        for log_n in 1..=4 {
            check(&Setup::new(family, log_n));
        }
    }
}

/// h_i = ([x^i] coset interpolant of a b - [x^i] c) / z, i <= n - 2; the last is zero.
#[test]
fn six_transforms_give_the_coefficients() {
    each_setup(|setup| {
        for g in setup.shifts() {
            let z = g.pow(setup.n as u64) - Fr::ONE;
            let products = setup.interpolant(&setup.products(g));
            let c = setup.interpolant(&setup.c);
            let h: Vec<Fr> = (0..setup.n)
                .map(|i| (products[i] * inverse(g.pow(i as u64)) - c[i]) * inverse(z))
                .collect();
            assert!(h[setup.n - 1].is_zero());
            let sum = dot(&h[..setup.n - 1], &setup.tau_power_h());
            assert!(sum == setup.wanted(), "n {}", setup.n);
        }
    });
}

/// sum_j (a b - c)(g w^j) H_j with g^2 = w, for odd Lagrange points.
#[test]
fn six_transforms_give_the_odd_values() {
    each_setup(|setup| {
        let c = setup.on_coset(&setup.c, setup.half);
        let products = setup.products(setup.half);
        let values: Vec<Fr> = products.iter().zip(&c).map(|(ab, c)| *ab - *c).collect();
        let sum = dot(&values, &setup.odd_lagrange_h());
        assert!(sum == setup.wanted(), "n {}", setup.n);
    });
}

/// P and Q from tau powers: sum_j (a b)(g w^j) P_j - sum_k c_k Q_k, any g.
#[test]
fn four_transforms_from_tau_powers() {
    each_setup(|setup| {
        let mut h = setup.tau_power_h();
        h.push(Fr::ZERO);
        for g in setup.shifts() {
            let z = g.pow(setup.n as u64) - Fr::ONE;
            let scale = inverse(setup.size() * z);
            let shifted: Vec<Fr> = (0..).zip(&h).map(|(i, h)| *h * inverse(g.pow(i))).collect();
            let p = powers_sum(&shifted, inverse(setup.w));
            let q = powers_sum(&h, inverse(setup.w));
            let (p, q): (Vec<Fr>, Vec<Fr>) = p
                .iter()
                .zip(&q)
                .map(|(p, q)| (*p * scale, *q * scale))
                .unzip();
            let sum = dot(&setup.products(g), &p) - dot(&setup.c, &q);
            assert!(sum == setup.wanted(), "n {}", setup.n);
            // The closed forms have the term of tau^(n-1), for which such a key has no point.
            let top = setup.z_at_tau() * inverse(setup.delta) * setup.tau.pow(setup.n as u64 - 1);
            let (p_whole, q_whole) = setup.closed_form(g);
            for k in 0..setup.n {
                let term = scale * top * setup.w.pow(k as u64);
                assert!(q[k] + term == q_whole[k], "n {}", setup.n);
                let term = term * inverse(g.pow(setup.n as u64 - 1));
                assert!(p[k] + term == p_whole[k], "n {}", setup.n);
            }
            let sum = dot(&setup.products(g), &p_whole) - dot(&setup.c, &q_whole);
            assert!(sum == setup.wanted(), "n {}", setup.n);
        }
    });
}

/// P is H as it stands, and Q = n^-1 sum_i w^(-ik) g^i sum_j w^(ij) H_j with g^2 = w.
#[test]
fn four_transforms_from_odd_lagrange_points() {
    each_setup(|setup| {
        let (g, h) = (setup.half, setup.odd_lagrange_h());
        let inner = powers_sum(&h, setup.w);
        let shifted: Vec<Fr> = (0..)
            .zip(&inner)
            .map(|(i, sum)| *sum * g.pow(i) * inverse(setup.size()))
            .collect();
        let q = powers_sum(&shifted, inverse(setup.w));
        let sum = dot(&setup.products(g), &h) - dot(&setup.c, &q);
        assert!(sum == setup.wanted(), "n {}", setup.n);
        assert!(g.pow(setup.n as u64) == -Fr::ONE);
        assert!((h, q) == setup.closed_form(g), "n {}", setup.n);
    });
}

/// The Q of one basis beside the P of another is wrong: both come from one list of points.
#[test]
fn bases_of_two_kinds_do_not_mix() {
    each_setup(|setup| {
        let (p, _) = setup.closed_form(setup.half);
        let (_, q) = setup.closed_form(Fr::from(7));
        let sum = dot(&setup.products(setup.half), &p) - dot(&setup.c, &q);
        assert!(sum != setup.wanted());
    });
}

/// c_k = sum_v C_kv w_v, so its part can be taken off each variable's point: L' for private variables, E
/// for public ones, which have no L.
#[test]
fn the_part_of_c_moves_into_l() {
    each_setup(|setup| {
        let variables = setup.n + 3;
        let inputs = 2;
        let witness = values(variables, 5);
        let l = values(variables - inputs, 6);
        let (_, q) = setup.closed_form(setup.half);
        // A dense C; c is what it makes of the witness.
        let matrix: Vec<Vec<Fr>> = (0..setup.n)
            .map(|row| values(variables, 10 + row as u64))
            .collect();
        let c: Vec<Fr> = matrix.iter().map(|row| dot(row, &witness)).collect();
        let part = |v: usize| {
            let terms = matrix.iter().zip(&q);
            terms.fold(Fr::ZERO, |sum, (row, q)| sum + row[v] * *q)
        };
        let primed: Vec<Fr> = (0..variables)
            .map(|v| match v.checked_sub(inputs) {
                None => -part(v),
                Some(private) => l[private] - part(v),
            })
            .collect();
        let before = dot(&witness[inputs..], &l) - dot(&c, &q);
        assert!(dot(&witness, &primed) == before);
    });
}

/// pi_c with B1 = beta1 + sum B1 + s delta1 and - r s delta1, and as the prover puts it together.
#[test]
fn the_two_forms_of_pi_c_agree() {
    let [a, beta, b, delta, r, s, sums] = values(7, 4)[..] else {
        unreachable!()
    };
    let b1 = beta + b + s * delta;
    let long = sums + s * a + r * b1 - r * s * delta;
    assert!(long == sums + s * a + r * (beta + b));
}
