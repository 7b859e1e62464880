//! Values of constants, read from the source: most of them are private to their modules.

use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use syn::{BinOp, Expr, Lit};

use crate::functions::folder;

/// A constant, or a field with its default, as a number; of a time the milliseconds. `file` is a crate and a file in it:
/// `core/model/tally`.
///
/// # Errors
/// If there is none, or if it is no product of numbers.
pub fn value(file: &str, name: &str) -> Result<u64, String> {
    let (package, path) = file.split_once('/').ok_or("a file is named by its crate and its path")?;
    let path = format!("{}/../../{}/src/{path}.rs", env!("CARGO_MANIFEST_DIR"), folder(package));
    let source = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let source: TokenStream = source.parse().map_err(|error| format!("{path}: {error}"))?;
    in_source(&source, name).ok_or_else(|| format!("{path} has no number {name}"))
}

fn in_source(source: &TokenStream, name: &str) -> Option<u64> {
    let mut expressions = Vec::new();
    given(source.clone(), name, &mut expressions);
    expressions.into_iter().find_map(|expression| number(&syn::parse2(expression).ok()?, source))
}

/// What is given to this name: `name: Type = expression`, or `name: expression` in a value of a struct.
fn given(tokens: TokenStream, name: &str, found: &mut Vec<TokenStream>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is =
        |token: Option<&TokenTree>, sign| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => given(group.stream(), name, found),
            TokenTree::Ident(ident) if ident == name && is(tokens.get(place + 1), ':') => {
                let rest =
                    tokens[place + 2..].iter().take_while(|token| !is(Some(*token), ';') && !is(Some(*token), ','));
                let rest: Vec<&TokenTree> = rest.collect();
                let start = rest.iter().position(|token| is(Some(*token), '=')).map_or(0, |place| place + 1);
                found.push(rest[start..].iter().map(|token| (*token).clone()).collect());
            }
            _ => {}
        }
    }
}

fn number(expression: &Expr, source: &TokenStream) -> Option<u64> {
    let of = |expression| number(expression, source);
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Paren(inner) => of(&inner.expr),
        Expr::Cast(inner) => of(&inner.expr),
        Expr::Path(path) => in_source(source, &path.path.get_ident()?.to_string()),
        Expr::MethodCall(call) if call.method == "unwrap" => of(&call.receiver),
        Expr::Binary(operation) => match operation.op {
            BinOp::Mul(_) => of(&operation.left)?.checked_mul(of(&operation.right)?),
            _ => None,
        },
        Expr::Call(call) => {
            let Expr::Path(function) = &*call.func else { return None };
            let unit = match function.path.segments.last()?.ident.to_string().as_str() {
                "from_hours" => 60 * 60 * 1000,
                "from_secs" => 1000,
                "from_millis" | "new" => 1,
                _ => return None,
            };
            of(call.args.first()?)?.checked_mul(unit)
        }
        _ => None,
    }
}

/// A number with commas between its thousands.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let comma = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    digits.char_indices().flat_map(|(place, digit)| comma(place).then_some(',').into_iter().chain([digit])).collect()
}

/// A number of bytes in its largest unit.
pub fn bytes(number: u64) -> String {
    in_unit(number, &[(1 << 30, "GiB", 1), (1 << 20, "MiB", 1), (1 << 10, "KiB", 1), (1, "bytes", 1)])
}

/// Milliseconds in the unit that says them best: 90 seconds, 24 hours, 3 days.
pub fn time(millis: u64) -> String {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let unit = [(DAY, "days", 2), (DAY / 24, "hours", 1), (60_000, "minutes", 2), (1000, "seconds", 1), (1, "ms", 1)];
    let text = in_unit(millis, &unit);
    if text.starts_with("1 ") { text.trim_end_matches('s').to_owned() } else { text }
}

/// The number in the first unit of which it is a multiple, and of which it has enough.
fn in_unit(number: u64, units: &[(u64, &str, u64)]) -> String {
    let fits = |(size, _, least): &&(u64, &str, u64)| number.is_multiple_of(*size) && number / size >= *least;
    let (size, unit, _) = units.iter().find(fits).expect("the last unit fits");
    format!("{} {unit}", count(number / size))
}
