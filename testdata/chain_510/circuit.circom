pragma circom 2.1.0;
include "../include/chain.inc.circom";

// 510 constraints, one public value and the constant one: a domain of 512 without a spare row.
component main = Chain(510);
