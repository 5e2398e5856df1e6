pragma circom 2.1.0;
include "../include/chain.inc.circom";

// One row more than a domain of 512 holds: half of the 1024 rows are empty.
component main = Chain(511);
