pragma circom 2.1.0;

// A two-to-one hash of our own for test circuits: the Miyaguchi-Preneel construction over a block
// cipher in the manner of MiMC (eprint 2016/492, section 2), with the power map x^5.
//
//     E_k(x):  t_0 = x;  t_(i+1) = (t_i + k + c_i)^5 for i = 0 .. 109;  E_k(x) = t_110 + k
//     H(a, b) = E_b(a) + a + b
//
// x^5 permutes the field since 5 does not divide r - 1; 110 = ceil(log_5 r) rounds.
// Constants: c_0 = 0, c_(i+1) = c_i^5 + i + 1 mod r.
// Three constraints a round. Nobody has analysed this hash: it is there to be proved, not trusted.

function hash_rounds() {
    return 110;
}

template Hash() {
    signal input a;
    signal input b;
    signal output out;

    var rounds = hash_rounds();
    signal square[rounds];
    signal fourth[rounds];
    signal state[rounds + 1];

    state[0] <== a;
    var constant = 0;
    for (var i = 0; i < rounds; i++) {
        square[i] <== (state[i] + b + constant) * (state[i] + b + constant);
        fourth[i] <== square[i] * square[i];
        state[i + 1] <== fourth[i] * (state[i] + b + constant);
        constant = constant ** 5 + i + 1;
    }
    out <== state[rounds] + a + 2 * b;
}
