//! `rowmill block`, `unblock` and `blocked`: which callers the functions refuse to serve.

use std::net::IpAddr;
use std::process::ExitCode;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use rowmill_core::model::blocks::{self, AT, Principal, REASON, REASON_MAX_BYTES, SCOPE_PREFIX};
use rowmill_core::model::ids::Owner;
use serde::Serialize;

use super::connection::FunctionsArgs;
use super::operator::Operator;
use super::{CommandError, print_list};
use crate::aws::failed;
use crate::terminal::{cut, escape_controls, table};

/// The output of the stack with the name of the table.
const TABLE_OUTPUT: &str = "AdmissionTable";

/// Blocks an owner: its requests to create or change anything are refused
///
/// Effective within a minute. Jobs that run go on, unless you cancel them with --cancel-jobs. Reading still works.
#[derive(Debug, clap::Args)]
pub struct BlockArgs {
    #[command(flatten)]
    pub principal: PrincipalArgs,
    /// Why, for other operators: the caller does not see it
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    pub reason: Option<String>,
    /// Cancel the owner's active jobs, too
    #[arg(long, conflicts_with = "address")]
    pub cancel_jobs: bool,
    #[command(flatten)]
    pub stack: FunctionsArgs,
}

/// Lifts the block of an owner
///
/// Effective within a minute.
#[derive(Debug, clap::Args)]
pub struct UnblockArgs {
    #[command(flatten)]
    pub principal: PrincipalArgs,
    #[command(flatten)]
    pub stack: FunctionsArgs,
}

/// Lists who is blocked
#[derive(Debug, clap::Args)]
pub struct BlockedArgs {
    #[command(flatten)]
    pub stack: FunctionsArgs,
    /// Print each block as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// An owner or an address.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub struct PrincipalArgs {
    /// The owner: the `sub` of its tokens
    #[arg(value_name = "OWNER", value_parser = parse_owner)]
    pub owner: Option<Owner>,
    /// An address instead of an owner, for an open API. Of an IPv6 address, its /64 network counts
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,
}

impl PrincipalArgs {
    fn principal(&self) -> Principal {
        match (&self.owner, self.address) {
            (Some(owner), _) => Principal::Owner(owner.clone()),
            (None, Some(address)) => Principal::of_address(address),
            (None, None) => unreachable!("clap requires one of them"),
        }
    }
}

pub(super) fn parse_owner(text: &str) -> Result<Owner, String> {
    Owner::of_name(text)
        .ok_or_else(|| format!("an owner has 1 to {} bytes, no `#` and no control characters", Owner::MAX_BYTES))
}

fn parse_reason(text: &str) -> Result<String, String> {
    match (1..=REASON_MAX_BYTES).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err(format!("a reason has 1 to {REASON_MAX_BYTES} bytes")),
    }
}

pub(super) struct AdmissionTable {
    dynamodb: aws_sdk_dynamodb::Client,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ListedBlock {
    principal: String,
    since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl AdmissionTable {
    pub async fn of(stack: &FunctionsArgs) -> Result<Self, CommandError> {
        let stack = stack.deployed().await?;
        let name = stack.output(TABLE_OUTPUT)?.to_owned();
        Ok(Self { dynamodb: stack.aws.dynamodb, name })
    }

    /// A block that is there keeps its time, and its reason if there is no other.
    pub async fn put(&self, principal: &Principal, at: Timestamp, reason: Option<String>) -> Result<(), CommandError> {
        let request = self.dynamodb.update_item().table_name(&self.name);
        let request = request.key("scope", AttributeValue::S(blocks::scope(principal)));
        let request = request.expression_attribute_names("#at", AT);
        let mut request =
            request.expression_attribute_values(":at", AttributeValue::N(at.as_millisecond().to_string()));
        let mut set = "SET #at = if_not_exists(#at, :at)".to_owned();
        if let Some(reason) = reason {
            set += ", #reason = :reason";
            request = request.expression_attribute_names("#reason", REASON);
            request = request.expression_attribute_values(":reason", AttributeValue::S(reason));
        }
        request.update_expression(set).send().await.map_err(failed(format!("block {principal}")))?;
        Ok(())
    }

    /// The reason of a block, empty if it has none. `None` if there is no block.
    pub async fn reason(&self, principal: &Principal) -> Result<Option<String>, CommandError> {
        let request = self.dynamodb.get_item().table_name(&self.name).consistent_read(true);
        let request = request.key("scope", AttributeValue::S(blocks::scope(principal)));
        let row = request.send().await.map_err(failed(format!("look whether {principal} is blocked")))?.item;
        let row = row.filter(|row| !row.is_empty());
        Ok(row.map(|row| row.get(REASON).and_then(|text| text.as_s().ok()).cloned().unwrap_or_default()))
    }

    /// Returns whether there was a block.
    pub async fn delete(&self, principal: &Principal) -> Result<bool, CommandError> {
        let request = self.dynamodb.delete_item().table_name(&self.name);
        let request = request.key("scope", AttributeValue::S(blocks::scope(principal)));
        let request = request.return_values(aws_sdk_dynamodb::types::ReturnValue::AllOld);
        let deleted = request.send().await.map_err(failed(format!("unblock {principal}")))?;
        Ok(deleted.attributes.is_some_and(|row| !row.is_empty()))
    }

    /// All blocks, by principal. Reads the whole table, which has no index of them.
    async fn all(&self) -> Result<Vec<ListedBlock>, CommandError> {
        let request = self.dynamodb.scan().table_name(&self.name);
        let request = request.filter_expression("begins_with(#scope, :prefix)");
        let request = request.expression_attribute_names("#scope", "scope");
        let request = request.expression_attribute_values(":prefix", AttributeValue::S(SCOPE_PREFIX.to_owned()));
        let mut rows = request.into_paginator().items().send();
        let mut blocks = Vec::new();
        while let Some(row) = rows.next().await {
            let row = row.map_err(failed("list the blocks"))?;
            let text = |name: &str| row.get(name).and_then(|value| value.as_s().ok());
            let at = row.get(AT).and_then(|at| at.as_n().ok()?.parse().ok()).unwrap_or_default();
            let Some(principal) = text("scope").and_then(|scope| blocks::principal_of(scope)) else { continue };
            let since = Timestamp::from_millisecond(at).unwrap_or_default();
            blocks.push(ListedBlock { principal: principal.to_string(), since, reason: text(REASON).cloned() });
        }
        blocks.sort_by(|one, other| one.principal.cmp(&other.principal));
        Ok(blocks)
    }
}

pub async fn execute(args: BlockArgs) -> Result<ExitCode, CommandError> {
    let principal = args.principal.principal();
    AdmissionTable::of(&args.stack).await?.put(&principal, Timestamp::now(), args.reason).await?;
    eprintln!("{principal} is blocked. All functions know it within a minute.");
    if let (Principal::Owner(owner), true) = (&principal, args.cancel_jobs) {
        let cancelled = Operator::of(&args.stack).await?.cancel_all(owner).await?;
        eprintln!("{cancelled} jobs are cancelled. Repeat this after a minute for jobs that were created meanwhile.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `rowmill unblock`. Exit code 1 if there was no block.
pub async fn execute_unblock(args: UnblockArgs) -> Result<ExitCode, CommandError> {
    let principal = args.principal.principal();
    if !AdmissionTable::of(&args.stack).await?.delete(&principal).await? {
        eprintln!("{principal} is not blocked.");
        return Ok(ExitCode::FAILURE);
    }
    eprintln!("{principal} is no longer blocked. All functions know it within a minute.");
    Ok(ExitCode::SUCCESS)
}

pub async fn execute_blocked(args: BlockedArgs) -> Result<ExitCode, CommandError> {
    let blocks = AdmissionTable::of(&args.stack).await?.all().await?;
    print_list(args.json, &blocks, "Nobody is blocked.", || block_table(&blocks))?;
    Ok(ExitCode::SUCCESS)
}

fn block_table(blocks: &[ListedBlock]) -> String {
    let mut rows = vec![["blocked", "since", "reason"].map(str::to_owned).to_vec()];
    for block in blocks {
        let reason = escape_controls(block.reason.as_deref().unwrap_or_default());
        rows.push(vec![escape_controls(&block.principal), format!("{:.0}", block.since), cut(&reason, 60)]);
    }
    table(&rows, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        block: BlockArgs,
    }

    fn principal_in(arguments: &[&str]) -> Option<String> {
        let line = Line::try_parse_from(["block"].iter().chain(arguments)).ok()?;
        Some(line.block.principal.principal().to_string())
    }

    #[test]
    fn an_owner_or_an_address_is_blocked_but_not_both() {
        assert_eq!(principal_in(&["user-7", "--reason", "bombs"]).as_deref(), Some("owner:user-7"));
        assert_eq!(principal_in(&["--address", "192.0.2.7"]).as_deref(), Some("address:192.0.2.7"));
        let network = principal_in(&["--address", "2001:db8:1:2:3::4"]);
        assert_eq!(network.as_deref(), Some("address:2001:db8:1:2::/64"));
        for wrong in [&[][..], &["user-7", "--address", "192.0.2.7"], &["a#b"], &["--address", "here"]] {
            assert_eq!(principal_in(wrong), None, "{wrong:?}");
        }
        assert_eq!(principal_in(&["user-7", "--reason", &"x".repeat(501)]), None);
    }

    #[test]
    fn a_block_is_a_row_of_the_table() {
        let block = |reason: Option<&str>| ListedBlock {
            principal: "owner:a\u{1b}b".into(),
            since: "2025-06-15T15:58:20.5Z".parse().unwrap(),
            reason: reason.map(str::to_owned),
        };
        let table = block_table(&[block(Some("sent bombs")), block(None)]);
        assert!(table.contains("2025-06-15T15:58:20Z") && table.contains("sent bombs"), "{table}");
        assert!(!table.contains('\u{1b}'), "{table}");
    }
}
