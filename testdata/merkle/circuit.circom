pragma circom 2.1.0;
include "../include/hash.inc.circom";

// "I know a secret whose leaf lies under this root, and this is its tag": membership in a Merkle
// tree without saying which leaf. The tag is the same in every proof of that secret, so that a
// verifier can refuse the second.
//
//     leaf = H(secret, 0),  tag = H(secret, 1),  node = H(left, right)
template Membership(depth) {
    signal input secret;
    signal input sibling[depth];
    // 1 where the node on the path is the right child.
    signal input right[depth];
    signal output root;
    signal output tag;

    component leaf = Hash();
    leaf.a <== secret;
    leaf.b <== 0;
    component tagged = Hash();
    tagged.a <== secret;
    tagged.b <== 1;
    tag <== tagged.out;

    component parent[depth];
    signal node[depth + 1];
    signal swap[depth];
    node[0] <== leaf.out;
    for (var i = 0; i < depth; i++) {
        right[i] * (right[i] - 1) === 0;
        swap[i] <== right[i] * (sibling[i] - node[i]);
        parent[i] = Hash();
        parent[i].a <== node[i] + swap[i];
        parent[i].b <== sibling[i] - swap[i];
        node[i + 1] <== parent[i].out;
    }
    root <== node[depth];
}

component main = Membership(8);
