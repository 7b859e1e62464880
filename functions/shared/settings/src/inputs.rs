//! The buckets of others that callers may read.

use rowmill_core::model::ids::Owner;

use crate::InputSettings;

/// The buckets of others that callers may read, and what the keys begin with that each of them may read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    buckets: Vec<String>,
    prefix: String,
}

impl Inputs {
    /// The buckets of these settings. The bucket of the stack is none of them: it holds the files of all callers.
    pub fn of(settings: InputSettings, own_bucket: &str) -> Self {
        // `arn:aws:s3:::data`
        let names = settings.buckets.split(',').filter_map(|arn| arn.rsplit(':').next());
        let buckets = names.filter(|name| !name.is_empty() && *name != own_bucket);
        Self { buckets: buckets.map(str::to_owned).collect(), prefix: settings.prefix }
    }

    /// Checks that a bucket may be read.
    ///
    /// # Errors
    /// Why it may not: the rest of a sentence that begins with its name.
    pub fn check_bucket(&self, bucket: &str) -> Result<(), &'static str> {
        if self.buckets.is_empty() {
            return Err("is not allowed: this stack reads no buckets of others, see its parameter `InputBuckets`.");
        }
        match self.buckets.iter().any(|allowed| allowed == bucket) {
            true => Ok(()),
            false => Err("is not a bucket that this stack may read, see its parameter `InputBuckets`."),
        }
    }

    /// True if any bucket may be read.
    pub const fn are_any(&self) -> bool {
        !self.buckets.is_empty()
    }

    /// Checks that this caller may read keys that begin like this.
    ///
    /// # Errors
    /// Why it may not: the rest of a sentence that begins with the key.
    pub fn check_key(&self, owner: &Owner, key: &str) -> Result<(), String> {
        match self.prefix_of(owner) {
            Some(allowed) if key.starts_with(&allowed) => Ok(()),
            Some(allowed) => Err(format!("must begin with `{allowed}`, see the parameter `InputPrefix` of the stack.")),
            None => Err("cannot be allowed: the name of the caller has a `/`.".to_owned()),
        }
    }

    /// What the keys that this caller may read begin with. A caller whose name has a slash could reach into the keys of
    /// another one.
    fn prefix_of(&self, owner: &Owner) -> Option<String> {
        const OWNER: &str = "{owner}";
        if !self.prefix.contains(OWNER) {
            return Some(self.prefix.clone());
        }
        let end = if self.prefix.ends_with('/') { "" } else { "/" };
        (!owner.0.contains('/')).then(|| self.prefix.replace(OWNER, &owner.0) + end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(buckets: &str, prefix: &str) -> Inputs {
        Inputs::of(InputSettings { buckets: buckets.to_owned(), prefix: prefix.to_owned() }, "own")
    }

    #[test]
    fn the_buckets_of_the_settings_may_be_read_but_not_that_of_the_stack() {
        assert!(inputs("", "").check_bucket("data").unwrap_err().contains("no buckets of others"));
        let all = inputs("arn:aws:s3:::data,arn:aws-cn:s3:::more,arn:aws:s3:::own", "");
        for (bucket, is_allowed) in [("data", true), ("more", true), ("own", false), ("mor", false), ("", false)] {
            assert_eq!(all.check_bucket(bucket).is_ok(), is_allowed, "{bucket}");
        }
        assert_eq!(all.check_key(&Owner("a/b".to_owned()), ""), Ok(()));
    }

    #[test]
    fn a_caller_reads_what_its_prefix_allows() {
        for template in ["tenants/{owner}/", "tenants/{owner}"] {
            let own = inputs("arn:aws:s3:::data", template);
            let allowed = |owner: &str, key| own.check_key(&Owner(owner.to_owned()), key).is_ok();
            assert!(allowed("a", "tenants/a/2026/"));
            for key in ["", "tenants/", "tenants/a", "tenants/ab/", "tenants/b/"] {
                assert!(!allowed("a", key), "{key}");
            }
            assert!(!allowed("a/b", "tenants/a/b/"));
        }
    }
}
