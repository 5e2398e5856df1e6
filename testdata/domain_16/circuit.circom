pragma circom 2.1.0;
include "../include/chain.inc.circom";

// 13 constraints, two public values and the constant one: a domain of 16 without a spare row.
component main {public [start]} = Chain(13);
