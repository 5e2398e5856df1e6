pragma circom 2.1.0;
include "../include/mixed.inc.circom";

// Compiled with --O2; its siblings mixed_O* are the same source.
component main = Mixed(16);
