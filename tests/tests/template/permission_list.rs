//! The permissions as documentation: every one was used by a test, or stands there with the reason why none can show
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rowmill::template::{Function, Template};

use crate::parameters::{WRITE, between, with_between};
use crate::permissions::{granted, list, resource_text, statements};
use crate::{event_sources, properties, target, template, workspace};

/// The document that lists the permissions.
const DOCUMENT: &str = "docs/permissions.md";

/// Around the permissions that tests have used.
const USED: [&str; 2] = ["<!-- used: begin -->", "<!-- used: end -->"];

/// Around the permissions that no test can show.
const ONLY_ON_AWS: [&str; 2] = ["<!-- only on AWS: begin -->", "<!-- only on AWS: end -->"];

/// Names the file in which `infra/local/launcher.py` has recorded what functions used, if the list is to be checked
/// against it.
const RECORDED: &str = "ROWMILL_RECORDED_PERMISSIONS";

/// A function, an action and a resource.
type Permission = (String, String, String);

/// The functions with their roles.
fn roles(template: &Template) -> Vec<(Function, String)> {
    let role = |function: Function| {
        let role = target(&properties(template, &function.logical_id)["Role"]).to_owned();
        (function, role)
    };
    template.functions().unwrap().into_iter().map(role).collect()
}

fn granted_by(template: &Template) -> BTreeSet<Permission> {
    let of_function = |(function, role): (Function, String)| {
        let granted = granted(properties(template, &role)).into_iter();
        granted.map(move |(action, resource)| (function.package.clone(), action, resource))
    };
    roles(template).into_iter().flat_map(of_function).collect()
}

/// The rows of a table, without its two lines of header.
fn table_rows(table: &str) -> Vec<Vec<String>> {
    let lines = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let cell = |cell: &str| cell.trim().replace('`', "");
    lines.map(|line| line.trim_matches('|').split('|').map(cell).collect()).collect()
}

fn names(cell: &str) -> Vec<&str> {
    cell.split(", ").collect()
}

/// The functions in a cell: some, all, or all but some.
fn functions_in<'a>(cell: &'a str, all: &[&'a str]) -> Vec<&'a str> {
    match cell.strip_prefix("all but ") {
        Some(others) => all.iter().copied().filter(|name| !names(others).contains(name)).collect(),
        None if cell == "all" => all.to_vec(),
        None => names(cell),
    }
}

/// The permissions of a table with the columns function, resource and actions.
fn permissions_in(table: &str, template: &Template) -> BTreeSet<Permission> {
    let functions: BTreeMap<String, String> =
        template.functions().unwrap().into_iter().map(|function| (function.package, function.logical_id)).collect();
    let all: Vec<&str> = functions.keys().map(String::as_str).collect();
    let sources = event_sources(template);
    let mut permissions = BTreeSet::new();
    for row in table_rows(table) {
        for function in functions_in(&row[0], &all) {
            let id = &functions[function];
            let resources = match row[1].as_str() {
                "its log group" => vec![target(&properties(template, id)["LoggingConfig"]["LogGroup"])],
                "its queues" => sources.iter().filter(|source| source.function == id).map(|s| s.queue).collect(),
                others => names(others),
            };
            for resource in resources {
                let permission = |action: &str| (function.to_owned(), action.to_owned(), resource.to_owned());
                permissions.extend(names(&row[2]).into_iter().map(permission));
            }
        }
    }
    permissions
}

/// The permissions that the tests used, by the file that the launcher has written.
fn recorded(record: &str, template: &Template) -> BTreeSet<Permission> {
    let roles: BTreeMap<String, String> =
        roles(template).into_iter().map(|(function, role)| (role, function.package)).collect();
    let permission = |line: &str| {
        let [role, sid, action, position] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let statements = statements(properties(template, role)).into_iter();
        let statement = statements.into_iter().find(|statement| statement["Sid"] == sid).expect("the statement");
        let resources = list(&statement["Resource"]);
        // A parameter may be several resources, but is one in the template.
        let position: usize = position.parse().expect("a number");
        let resource = resources.get(position).unwrap_or(&resources[0]);
        (roles[role].clone(), action.to_owned(), resource_text(resource))
    };
    record.lines().map(permission).collect()
}

fn table(permissions: &BTreeSet<Permission>) -> String {
    let mut actions: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (function, action, resource) in permissions {
        actions.entry((function, resource)).or_default().push(format!("`{action}`"));
    }
    let row = |((function, resource), actions): (&(&str, &str), &Vec<String>)| {
        format!("| {function} | `{resource}` | {} |\n", actions.join(", "))
    };
    let rows: String = actions.iter().map(row).collect();
    format!("\n\n| function | resource | actions |\n|---|---|---|\n{rows}\n")
}

#[test]
fn every_permission_was_used_by_a_test_or_is_listed_with_its_reason() {
    let (template, path) = (template(), workspace().join(DOCUMENT));
    let mut document = fs::read_to_string(&path).unwrap();
    let only_on_aws = permissions_in(between(&document, ONLY_ON_AWS), &template);
    if let Some(record) = std::env::var_os(RECORDED) {
        // What a run does not always need, such as closing a connection that a busy machine starves, stays where it is
        // listed.
        let used = &recorded(&fs::read_to_string(record).unwrap(), &template) - &only_on_aws;
        if std::env::var_os(WRITE).is_some() {
            document = with_between(&document, USED, &table(&used));
            fs::write(&path, &document).unwrap();
        }
        let listed = permissions_in(between(&document, USED), &template);
        let (unused, unlisted) = (&listed - &used, &used - &listed);
        assert!(unused.is_empty(), "no test used {unused:#?}, which {DOCUMENT} lists as used");
        assert!(unlisted.is_empty(), "{DOCUMENT} does not list as used {unlisted:#?}");
    }
    let used = permissions_in(between(&document, USED), &template);
    assert!(used.is_disjoint(&only_on_aws), "{:?} is used by the tests", &used & &only_on_aws);
    let (granted, listed) = (granted_by(&template), &used | &only_on_aws);
    assert!(granted.iter().all(|(_, action, _)| !action.contains('*')), "{granted:?}");
    let (unlisted, ungranted) = (&granted - &listed, &listed - &granted);
    assert!(unlisted.is_empty(), "{DOCUMENT} does not list {unlisted:#?}; it says how to add them");
    assert!(ungranted.is_empty(), "template.yaml does not grant {ungranted:#?}, which {DOCUMENT} lists");
}
