//! Replays the committed corpus through every decoder.

use std::{fs, path::PathBuf};

use conclave_fuzz::TARGETS;

fn fuzz_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

// API-230
#[test]
fn every_decoder_holds_for_its_whole_corpus() {
    for target in TARGETS {
        let folder = fuzz_folder().join("corpus").join(target.name);
        let mut replayed = 0;
        for entry in fs::read_dir(&folder).expect("a corpus for each target") {
            let bytes = fs::read(entry.expect("a file").path()).expect("readable");
            (target.run)(&bytes);
            replayed += 1;
        }
        assert!(replayed > 0, "{} has no corpus", target.name);
    }
}

#[test]
fn every_target_has_its_file_for_libfuzzer_and_no_file_is_left_over() {
    let mut files: Vec<String> = fs::read_dir(fuzz_folder().join("fuzz_targets"))
        .expect("the targets")
        .map(|entry| {
            let path = entry.expect("a file").path();
            path.file_stem()
                .and_then(|stem| stem.to_str())
                .expect("a name")
                .to_owned()
        })
        .collect();
    files.sort();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(files, names);
}

#[test]
fn every_decoder_holds_for_every_prefix_and_for_no_bytes() {
    for target in TARGETS {
        (target.run)(&[]);
        for length in 1..=64 {
            (target.run)(&vec![0; length]);
            (target.run)(&vec![0xff; length]);
        }
    }
}
