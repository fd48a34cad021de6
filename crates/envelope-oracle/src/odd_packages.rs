//! Key packages that MLS libraries refuse to build, signed so that a refusal has the reason it should have. Depends on
//! the writer that the tests of `conclave-envelope` use.

use crate::{
    building::{NOW, Package, credential_of, lifetime, vector},
    random::Random,
};

/// Farther from now than the longest run takes, because openmls judges lifetimes by its own clock.
const FAR_SECONDS: u64 = 10_000_000;

/// A key package with some of its fields set to values that bend or break a rule.
#[must_use]
pub fn draw(random: &mut Random, now_seconds: u64) -> Vec<u8> {
    let mut package = Package {
        source: lifetime(NOW, now_seconds + FAR_SECONDS),
        ..Package::sound()
    };
    for _ in 0..random.below(3) {
        bend(&mut package, random, now_seconds);
    }
    package.write()
}

fn bend(package: &mut Package, random: &mut Random, now_seconds: u64) {
    match random.below(14) {
        0 => package.version = *random.pick(&[0, 2, 0x0a0a, 0xffff]),
        1 => {
            package.cipher_suite = *random.pick(&[
                0, 1, 2, 3, 4, 5, 6, 7, 8, 0x42, 0x4d, 0x4e, 0x4f, 0x50, 0x51, 0x52, 0x906, 0x907, 0x0a0a,
                0xf042, 0xffff,
            ]);
        }
        2 => package.encryption_key = package.init_key.clone(),
        3 => package.signature_key = Some(vec![0x58; *random.pick(&[0, 31, 32, 33, 65])]),
        4 => package.credential_type = *random.pick(&[0, 1, 2, 3, 0x0a0a]),
        5 => {
            package.credential = random
                .pick(&[
                    vec![],
                    vec![0x0a, 1, 0xff],
                    vec![0x0a, 9],
                    vec![8, 1],
                    vec![0x12, 1, 7],
                    credential_of("any"),
                ])
                .clone();
        }
        6 => package.capable_extensions = random.pick(&[vec![], vec![1], vec![0xfabc, 0x000a]]).clone(),
        7 => {
            package.source = random
                .pick(&[vec![2], [vec![3], vector(&[1; 32])].concat()])
                .clone()
        }
        8 => {
            let times = [
                0,
                NOW,
                now_seconds - FAR_SECONDS,
                now_seconds + FAR_SECONDS,
                u64::MAX,
            ];
            package.source = lifetime(*random.pick(&times), *random.pick(&times));
        }
        9 => package.wrong_leaf_signature = true,
        10 => package.wrong_package_signature = true,
        11 => package.init_key = vec![0xcc; *random.pick(&[0, 1, 31, 64, 1216])],
        12 => package.leaf_extensions = extensions(random),
        _ => package.package_extensions = extensions(random),
    }
}

fn extensions(random: &mut Random) -> Vec<(u16, Vec<u8>)> {
    let kinds = [0, 1, 2, 3, 4, 5, 6, 7, 0x000a, 0x0a0a, 0xf000, 0xff03, 0xfabc];
    let bodies = [
        vec![],
        vec![0],
        vec![1, 9],
        vec![0, 0, 0],
        vec![0xc0],
        vec![7; 70],
    ];
    (0..random.below(4))
        .map(|_| (*random.pick(&kinds), random.pick(&bodies).clone()))
        .collect()
}
