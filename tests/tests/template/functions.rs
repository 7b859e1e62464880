//! The functions: their folders, their files, and what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{template, workspace};

/// The folders of the functions, `functions/<flow>/<package>`, by their packages. What functions share is no flow.
fn folders() -> BTreeMap<String, PathBuf> {
    let entries = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let flows = entries(workspace().join("functions")).filter(|flow| !flow.ends_with("shared"));
    flows.flat_map(entries).map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

#[test]
fn every_folder_is_a_function_with_the_same_files() {
    let declared = rowmill_template::functions().into_iter().map(|function| function.name.to_owned());
    assert_eq!(folders().into_keys().collect::<BTreeSet<_>>(), declared.collect());
    for (package, folder) in folders() {
        for file in ["main.rs", "start.rs", "handler.rs", "lib.rs", "declaration.rs"] {
            assert!(folder.join("src").join(file).is_file(), "{package} has no {file}");
        }
        let main = fs::read_to_string(folder.join("src/main.rs")).unwrap();
        assert!(main.lines().count() <= 10, "{package}: main.rs only calls start");
    }
}

/// What is read past the declaration is not passed by the template.
#[test]
fn settings_are_read_by_the_declaration_only() {
    for (package, folder) in folders() {
        for file in fs::read_dir(folder.join("src")).unwrap().map(|entry| entry.unwrap().path()) {
            let text = if file.is_file() { fs::read_to_string(&file).unwrap() } else { String::new() };
            let reads = ["from_env()", "env::var", "settings::read", "ROWMILL_"].iter().any(|call| text.contains(call));
            assert!(!reads, "{package}: {} reads the environment", file.display());
        }
    }
}

/// Cargo would not run them.
#[test]
fn a_library_that_is_not_tested_has_no_tests() {
    for (package, folder) in folders() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let is_tested = !manifest.split("\n[").any(|part| part.starts_with("lib]") && part.contains("test = false"));
        let mut paths = vec![folder.join("src")];
        while let Some(path) = paths.pop().filter(|_| !is_tested) {
            if path.is_dir() {
                paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let has_tests = ["#[test]", "#[tokio::test", "proptest!"].iter().any(|test| text.contains(test));
            assert!(!has_tests, "{package}: {} has tests, and its Cargo.toml `test = false`", path.display());
        }
    }
}

#[test]
fn every_setting_is_declared_in_one_group_and_stands_in_the_template() {
    let (template, mut declared_in) = (template(), BTreeMap::new());
    let groups = rowmill_template::functions().into_iter().flat_map(|function| function.settings);
    for setting in groups.flat_map(|group| (group.settings)()) {
        let group = *declared_in.entry(setting.parameter).or_insert(setting.group);
        assert_eq!(group, setting.group, "{} has two homes", setting.parameter);
        assert!(template.settings().any(|name| name == setting.parameter), "{} is not there", setting.parameter);
        assert_eq!(template.other_setting(setting.parameter), setting.other, "{}", setting.parameter);
    }
}

/// A message of a priority must find what one of normal priority finds.
#[test]
fn what_uses_a_queue_of_normal_jobs_uses_those_of_the_priorities_alike() {
    for function in rowmill_template::functions() {
        for right in function.uses {
            let uses = |queue| right.resources.contains(&queue);
            use rowmill_settings::{ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE, JOBS_HIGH_QUEUE, JOBS_QUEUE};
            assert_eq!(uses(JOBS_QUEUE), uses(JOBS_HIGH_QUEUE), "{} of {}", right.sid, function.name);
            let chunks = [ITEMS_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE].map(uses);
            assert!(chunks == [true; 3] || chunks == [false; 3], "{} of {}", right.sid, function.name);
        }
    }
}
