//! `cargo xtask requirements`: every requirement with the tests that hold it.
//!
//! - [`id`]: ids and ranges; [`scan`]: the claims in sources; [`list`]: which ids there are.

mod id;
mod list;
mod scan;

use std::{collections::BTreeMap, fs, io::Write as _};

use anyhow::Context as _;

use self::{
    id::Id,
    list::List,
    scan::{Claim, scan},
};
use crate::{cli::RequirementsArguments, progress, stamp, workspace::Workspace};

/// The list of ids.
const LIST_FILE: &str = "tests/requirements.toml";

/// Where tests are.
const SOURCES: &[&str] = &["crates", "edge", "gateway", "proto", "tests", "web-client", "www"];

/// The specification's tables, where they lie beside the checkout, with the prefix of their ids.
const TABLES: &[(&str, &str)] = &[
    ("../shared/requirements/backend-api.tsv", "API-"),
    ("../shared/requirements/conversation.tsv", "CONV-"),
];

/// Every requirement and what is known of it.
#[derive(Debug)]
pub(crate) struct Report {
    list: List,
    claims: BTreeMap<Id, Vec<Claim>>,
    /// What is wrong, beside ids without a test.
    faults: Vec<String>,
    warnings: Vec<String>,
}

impl Report {
    /// Reads the list and every source.
    ///
    /// # Errors
    ///
    /// The list or a source cannot be read.
    pub(crate) fn make(workspace: &Workspace) -> anyhow::Result<Self> {
        let file = workspace.path(LIST_FILE);
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let list = List::read(&text).with_context(|| format!("reading {}", file.display()))?;
        let mut report = Self {
            list,
            claims: BTreeMap::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
        };
        for file in stamp::files(workspace, SOURCES)? {
            // What is no text holds no test.
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            let name = file
                .strip_prefix(workspace.root())
                .unwrap_or(&file)
                .to_string_lossy()
                .into_owned();
            let scanned = scan(&name, &text);
            report.warnings.extend(
                scanned
                    .dangling
                    .into_iter()
                    .map(|place| format!("{place} names ids above no test")),
            );
            for claim in scanned.claims {
                report.claims.entry(claim.id.clone()).or_default().push(claim);
            }
        }
        for (id, claims) in &report.claims {
            if !report.list.0.contains_key(id) {
                let places: Vec<_> = claims
                    .iter()
                    .map(|claim| format!("{}:{}", claim.file, claim.line))
                    .collect();
                report.faults.push(format!(
                    "{id} is claimed by {} and not listed in {LIST_FILE}",
                    places.join(", ")
                ));
            }
        }
        for (table, prefix) in TABLES {
            if let Ok(table) = fs::read_to_string(workspace.path(table)) {
                report.faults.extend(report.list.differences(&table, prefix));
            }
        }
        Ok(report)
    }

    /// The ids that nothing holds and no later work covers.
    pub(crate) fn missing(&self) -> Vec<&Id> {
        self.list
            .0
            .iter()
            .filter(|(id, later)| later.is_none() && !self.claims.contains_key(id))
            .map(|(id, _)| id)
            .collect()
    }

    /// What is wrong, one line each; empty when all is well.
    pub(crate) fn faults(&self) -> Vec<String> {
        let missing = self.missing().into_iter().map(|id| format!("{id} has no test"));
        self.faults.iter().cloned().chain(missing).collect()
    }

    fn write(
        &self,
        output: &mut impl std::io::Write,
        arguments: &RequirementsArguments,
    ) -> std::io::Result<()> {
        let prefixes = &arguments.prefixes;
        for (id, later) in &self.list.0 {
            let name = id.to_string();
            let claims = self.claims.get(id).map(Vec::as_slice).unwrap_or_default();
            let is_missing = claims.is_empty() && later.is_none();
            let is_asked =
                prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
            if !is_asked || (arguments.missing && !is_missing) {
                continue;
            }
            match (later, is_missing) {
                (Some(subject), _) => writeln!(output, "{name}  later: {subject}")?,
                (None, true) => writeln!(output, "{name}  NO TEST")?,
                (None, false) => writeln!(output, "{name}")?,
            }
            for claim in claims {
                writeln!(output, "    {}:{}  {}", claim.file, claim.line, claim.test)?;
            }
        }
        let later = self
            .list
            .0
            .iter()
            .filter(|(id, later)| later.is_some() && !self.claims.contains_key(id))
            .count();
        let held = self
            .list
            .0
            .keys()
            .filter(|id| self.claims.contains_key(id))
            .count();
        writeln!(
            output,
            "{} requirements: {held} with tests, {later} later, {} missing",
            self.list.0.len(),
            self.missing().len()
        )
    }
}

/// Lists the requirements.
///
/// # Errors
///
/// An id has no test, or the lists do not agree; each is named.
pub(crate) fn run(workspace: &Workspace, arguments: &RequirementsArguments) -> anyhow::Result<()> {
    let report = Report::make(workspace)?;
    for prefix in &arguments.prefixes {
        anyhow::ensure!(
            report
                .list
                .0
                .keys()
                .any(|id| id.to_string().starts_with(prefix.as_str())),
            "no requirement begins with {prefix}: ids look like API-221 or CONV-A01"
        );
    }
    let mut output = std::io::stdout().lock();
    report.write(&mut output, arguments)?;
    output.flush()?;
    for warning in &report.warnings {
        progress::step(warning);
    }
    let faults = report.faults();
    anyhow::ensure!(
        faults.is_empty(),
        "{} requirements are not in order: give each a test, or the later work that covers it in {LIST_FILE}\n  {}",
        faults.len(),
        faults.join("\n  ")
    );
    Ok(())
}
