//! Whose the stack is: its tags, and the role that CloudFormation acts as.

use aws_sdk_cloudformation::types::{Stack, Tag};

/// CloudFormation's limit.
const TAGS_MAX: usize = 50;

#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct StackArgs {
    /// Tag the stack and its resources. The given tags replace those of the stack; without this option it keeps them.
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
    pub(super) tags: Vec<(String, String)>,
    /// Role that CloudFormation acts as, now and in later changes of the stack [default: the stack's; else your
    /// rights].
    #[arg(long, value_name = "ARN", value_parser = parse_role_arn)]
    pub(super) role_arn: Option<String>,
}

/// More tags than a stack may have.
#[derive(Debug, thiserror::Error)]
#[error("a stack has at most {TAGS_MAX} tags, and these are {0}")]
pub struct TooManyTags(usize);

impl StackArgs {
    /// Checks what can be known without AWS. Call it before a build, which takes minutes.
    pub fn check(&self) -> Result<(), TooManyTags> {
        if self.tags.len() > TAGS_MAX { Err(TooManyTags(self.tags.len())) } else { Ok(()) }
    }

    /// The tags that the stack will have. A change set without tags need not keep them, so they are sent again.
    pub(super) fn tags(&self, existing: Option<&Stack>) -> Option<Vec<Tag>> {
        let given = self.tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build());
        let of_stack = existing.map(Stack::tags).unwrap_or_default().iter();
        let kept = of_stack.filter(|tag| self.tags.is_empty() && !is_reserved(tag.key().unwrap_or_default())).cloned();
        Some(given.chain(kept).collect()).filter(|tags: &Vec<Tag>| !tags.is_empty())
    }
}

/// AWS itself sets these, and refuses them in requests.
fn is_reserved(key: &str) -> bool {
    key.get(.."aws:".len()).is_some_and(|start| start.eq_ignore_ascii_case("aws:"))
}

fn parse_tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let allowed = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_.:/+-@".contains(c);
    if !(1..=128).contains(&key.chars().count()) || value.chars().count() > 256 {
        return Err("the key of a tag has 1 to 128 characters, the value at most 256".to_owned());
    }
    if is_reserved(key) {
        return Err("keys that begin with aws: are reserved".to_owned());
    }
    if !key.chars().all(allowed) || !value.chars().all(|c| c == '=' || allowed(c)) {
        return Err("a tag has letters, digits, spaces and _ . : / = + - @ only".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_role_arn(text: &str) -> Result<String, String> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        ["arn", _, "iam", "", account, role]
            if account.len() == 12 && role.strip_prefix("role/").is_some_and(|name| !name.is_empty()) =>
        {
            Ok(text.to_owned())
        }
        _ => Err("expected the ARN of a role, such as arn:aws:iam::123456789012:role/deploy".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_tags(tags: &[(&str, &str)]) -> StackArgs {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        StackArgs { tags, role_arn: None }
    }

    #[test]
    fn a_tag_is_a_key_and_a_value_as_aws_accepts_them() {
        let (key, value) = ("k".repeat(128), "v".repeat(256));
        for (text, expected) in
            [("a=", ("a", "")), ("team:x=b=c d", ("team:x", "b=c d")), (&format!("{key}={value}"), (&key, &value))]
        {
            assert_eq!(parse_tag(text), Ok((expected.0.to_owned(), expected.1.to_owned())));
        }
        let (long_key, long_value) = (format!("{key}k=v"), format!("k={value}v"));
        for wrong in ["a", "=b", "aws:a=b", "AWS:a=b", "a=b;c", "a#=b", &long_key, &long_value] {
            assert!(parse_tag(wrong).is_err(), "{wrong}");
        }
        assert!(with_tags(&[("a", "b"); 50]).check().is_ok());
        assert!(with_tags(&[("a", "b"); 51]).check().is_err());
    }

    #[test]
    fn given_tags_replace_those_of_the_stack_which_keeps_them_otherwise() {
        let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build();
        let stack = Stack::builder().tags(tag("team", "a")).tags(tag("aws:servicecatalog:x", "y")).build();
        assert_eq!(with_tags(&[]).tags(None), None);
        assert_eq!(with_tags(&[]).tags(Some(&stack)), Some(vec![tag("team", "a")]));
        assert_eq!(with_tags(&[("cost", "1")]).tags(Some(&stack)), Some(vec![tag("cost", "1")]));
    }

    #[test]
    fn a_service_role_is_the_arn_of_a_role() {
        for arn in ["arn:aws:iam::123456789012:role/deploy", "arn:aws-cn:iam::123456789012:role/path/to/deploy"] {
            assert_eq!(parse_role_arn(arn), Ok(arn.to_owned()));
        }
        for wrong in [
            "",
            "deploy",
            "arn:aws:iam::123456789012:user/me",
            "arn:aws:iam::123456789012:role/",
            "arn:aws:iam::1:role/d",
        ] {
            assert!(parse_role_arn(wrong).is_err(), "{wrong}");
        }
    }
}
