//! How the stages of a transform are put into passes.

use cuzk_kernels::ntt::LOG_TILE;

/// Stages of a fine or middle pass: three rounds of radix 8.
const FULL: u32 = 9;

/// The stages of each pass, finest first; their sum is `log_n`, which is at least 3.
///
/// The coarsest takes what is left; in the others, and in their sum, the stages are a multiple of 3.
pub(super) fn stages(log_n: u32) -> Vec<u32> {
    let mut left = log_n;
    let mut stages = Vec::new();
    while left
        > if stages.is_empty() {
            LOG_TILE
        } else {
            LOG_TILE - 1
        }
    {
        stages.push(FULL);
        left -= FULL;
    }
    // Two stages left over would make a pass that moves all and computes nothing.
    if !stages.is_empty() && left < 3 {
        *stages.last_mut().expect("not empty") -= 3;
        left += 3;
    }
    stages.push(left);
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_passes_that_there_are() {
        for log_n in 3..=30 {
            let stages = stages(log_n);
            assert_eq!(stages.iter().sum::<u32>(), log_n);
            let (coarsest, finer) = stages.split_last().unwrap();
            assert!(finer.iter().all(|&stages| stages == 9 || stages == 6));
            assert!((3..=LOG_TILE).contains(coarsest));
            let mut stride = 0;
            for &rows in &stages {
                assert!(stride == 0 || stride >= LOG_TILE - rows, "{log_n}");
                stride += rows;
            }
        }
        assert_eq!(stages(27), [9, 9, 9]);
        assert_eq!(stages(24), [9, 9, 6]);
        assert_eq!(stages(11), [11]);
    }
}
