pragma circom 2.1.0;
include "../include/chain.inc.circom";

// Three constraints and one public value: the first circuit that a domain of 4 cannot hold.
component main = Chain(3);
