//! Settings: each has its default, its environment variable and its template parameter in one place.
//!
//! A group of settings is a struct made by [`settings!`](crate::settings!). Each of its fields is one of these:
//!
//! ```ignore
//! rowmill_settings::settings! {
//!     /// The limits of a sweep.
//!     #[derive(Clone, Copy, Debug)]
//!     pub struct SweepLimits {
//!         /// A group inside the group.
//!         pub recovery: Recovery;
//!         /// A setting: its default, and the template parameter that overrides it.
//!         pub backoff_max: Duration = Duration::from_secs(4 * 60 * 60), "SweepBackoffMaxSeconds";
//!         /// A constant. Tests may still use another value.
//!         pub jobs_max: usize = 100;
//!     }
//! }
//! ```
//!
//! The environment variable follows from the parameter: `SweepBackoffMaxSeconds` is passed as
//! `ROWMILL_SWEEP_BACKOFF_MAX_SECONDS`. So does the unit of a [`Duration`](std::time::Duration): the parameter ends
//! with `Seconds`, `Hours` or `Days`.
//!
//! Groups that several functions read are here. A group that one function reads is in the `limits.rs` of that function.
//! Its [declaration] names the groups that it reads, from which `infra/template` writes its environment, and its
//! `start.rs` reads each of them once.

mod buckets;
pub mod declaration;
mod files;
mod job_types;
mod jobs;
mod live;
mod owner_priorities;
mod quotas;
mod resources;
mod targets;
pub mod time_bounds;
mod times;
mod value;

use rowmill_core::model::job_type_limits::JobTypesError;
use rowmill_core::model::owner_priorities::OwnerPrioritiesError;
use rowmill_core::wiring::Missing;

use crate::declaration::Group;
use crate::time_bounds::TooShort;
pub use buckets::{AllowedBuckets, OtherBuckets};
pub use files::{FileLimits, Links};
pub use job_types::JobTypeSettings;
pub use jobs::{Deadlines, JobRetention, RETRY_AFTER_MAX, Recovery, StopGrace};
pub use live::ConnectionLimits;
pub use owner_priorities::OwnerPrioritySettings;
pub use quotas::RouteLimitSettings;
pub use resources::*;
pub use targets::{BucketSettings, FetchSettings, JobTargets};
pub use times::{CompleteTime, ProcessTime, SplitTime, TimeLimits, VISIBILITY_TIMEOUTS, check_times};
pub use value::Value;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A variable holds something else than it must.
    #[error("{name} is `{value}`; it must be {expected}")]
    Invalid {
        /// The environment variable.
        name: String,
        value: String,
        expected: &'static str,
    },
    #[error(transparent)]
    JobTypes(#[from] JobTypesError),
    #[error(transparent)]
    OwnerPriorities(#[from] OwnerPrioritiesError),
    #[error(transparent)]
    Times(#[from] TooShort),
    /// A start reads what the template does not pass to the function.
    #[error("{function} reads {what}, which its declaration does not name")]
    Undeclared { function: &'static str, what: &'static str },
    /// A declaration names what the start does not read.
    #[error("the declaration of {function} names {what}, which it does not read")]
    Unread { function: &'static str, what: &'static str },
}

/// Settings that belong together, read at once. Made by [`settings!`](crate::settings!).
pub trait SettingsGroup: Sized {
    /// The name of the type.
    const NAME: &'static str;

    /// The group as data, for declarations.
    const GROUP: Group = Group { name: Self::NAME, settings: Self::settings };

    fn defaults() -> Self;

    /// The group as the environment sets it. A variable that is not set or empty leaves the default.
    ///
    /// # Errors
    /// [`StartError::Invalid`] if a variable does not hold a value of its setting's type.
    fn from_env() -> Result<Self, StartError>;

    /// All settings of the group, including nested groups.
    fn settings() -> Vec<Setting>;
}

/// A setting as data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Setting {
    pub parameter: &'static str,
    /// The default, as the template writes it.
    pub default: String,
    pub group: &'static str,
}

impl Setting {
    /// The setting of a group. [`settings!`](crate::settings!) calls this.
    pub fn new(group: &'static str, parameter: &'static str, default: &impl Value) -> Self {
        Self { parameter, default: default.text(parameter), group }
    }

    pub fn variable(&self) -> String {
        variable(self.parameter)
    }
}

/// The environment variable of a template parameter: `ROWMILL_STALE_SECONDS` of `StaleSeconds`.
pub fn variable(parameter: &str) -> String {
    let mut variable = String::from("ROWMILL");
    for letter in parameter.chars() {
        if letter.is_ascii_uppercase() {
            variable.push('_');
        }
        variable.push(letter.to_ascii_uppercase());
    }
    variable
}

/// The value of the setting with this parameter. [`settings!`](crate::settings!) calls this.
pub fn read<T: Value>(parameter: &str, default: T) -> Result<T, StartError> {
    let name = variable(parameter);
    let value = std::env::var(&name).ok();
    parse(parameter, name, value, default)
}

fn parse<T: Value>(parameter: &str, name: String, value: Option<String>, default: T) -> Result<T, StartError> {
    match value.filter(|value| !value.trim().is_empty()) {
        None => Ok(default),
        Some(value) => {
            T::parse(value.trim(), parameter).ok_or(StartError::Invalid { name, value, expected: T::EXPECTED })
        }
    }
}

/// Makes a [`SettingsGroup`]: see [the crate](crate). `impl Type { … }` makes one of a struct of another crate.
#[macro_export]
macro_rules! settings {
    (@default $type:ty) => { <$type as $crate::SettingsGroup>::defaults() };
    (@default $type:ty, $default:expr $(, $parameter:literal)?) => { $default };
    (@read $type:ty) => { <$type as $crate::SettingsGroup>::from_env()? };
    (@read $type:ty, $default:expr, $parameter:literal) => { $crate::read::<$type>($parameter, $default)? };
    (@read $type:ty, $default:expr) => { $default };
    (@list $list:ident, $type:ty) => { $list.extend(<$type as $crate::SettingsGroup>::settings()) };
    (@list $list:ident, $type:ty, $default:expr, $parameter:literal) => {{
        let default: $type = $default;
        $list.push($crate::Setting::new(Self::NAME, $parameter, &default));
    }};
    (@list $list:ident, $type:ty, $default:expr) => {};
    (
        $(#[$attribute:meta])*
        pub struct $group:ident {
            $(
                $(#[$field_attribute:meta])*
                pub $field:ident: $type:ty $(= $default:expr $(, $parameter:literal)?)?;
            )+
        }
    ) => {
        $(#[$attribute])*
        pub struct $group {
            $($(#[$field_attribute])* pub $field: $type,)+
        }

        impl Default for $group {
            fn default() -> Self {
                <Self as $crate::SettingsGroup>::defaults()
            }
        }

        $crate::settings! { impl $group { $($field: $type $(= $default $(, $parameter)?)?;)+ } }
    };
    (impl $group:ident { $($field:ident: $type:ty $(= $default:expr $(, $parameter:literal)?)?;)+ }) => {
        impl $crate::SettingsGroup for $group {
            const NAME: &'static str = stringify!($group);

            fn defaults() -> Self {
                Self { $($field: $crate::settings!(@default $type $(, $default $(, $parameter)?)?),)+ }
            }

            fn from_env() -> Result<Self, $crate::StartError> {
                Ok(Self { $($field: $crate::settings!(@read $type $(, $default $(, $parameter)?)?),)+ })
            }

            fn settings() -> Vec<$crate::Setting> {
                let mut list = Vec::new();
                $($crate::settings!(@list list, $type $(, $default $(, $parameter)?)?);)+
                list
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parsed<T: Value>(parameter: &str, value: Option<&str>, default: T) -> Result<T, StartError> {
        parse(parameter, variable(parameter), value.map(str::to_owned), default)
    }

    crate::settings! {
        /// A group with a setting, a constant and a nested group.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Example {
            /// A setting.
            pub delay: Duration = Duration::from_secs(7200), "ExampleDelayHours";
            /// A constant.
            pub tries: u32 = 3;
            /// A group.
            pub recovery: Recovery;
        }
    }

    #[test]
    fn an_unset_setting_has_its_default() {
        assert_eq!(parsed("Example", None, 7_u64).unwrap(), 7);
        assert_eq!(parsed("Example", Some(" "), 7_u64).unwrap(), 7);
        assert_eq!(parsed("Example", Some(" 12 "), 7_u64).unwrap(), 12);
    }

    #[test]
    fn a_duration_has_the_unit_that_its_parameter_names() {
        let day = Duration::from_secs(86_400);
        assert_eq!(parsed("ExampleSeconds", Some("90"), day).unwrap(), Duration::from_secs(90));
        assert_eq!(parsed("ExampleHours", Some("2"), day).unwrap(), Duration::from_secs(7200));
        assert_eq!(parsed("ExampleDays", Some("2"), day).unwrap(), 2 * day);
        assert!(parsed("ExampleDays", Some(&u64::MAX.to_string()), day).is_err());
    }

    #[test]
    fn the_error_for_an_invalid_setting_names_its_value_and_the_expected_one() {
        let error = parsed("ChunkMaxItems", Some("many"), 500_u32).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ROWMILL_CHUNK_MAX_ITEMS is `many`; it must be a whole number from 0 to 4294967295"
        );
        assert!(parsed("Example", Some("-1"), 7_u64).is_err());
    }

    #[test]
    fn the_error_for_a_missing_resource_says_what_is_expected() {
        let missing = Resource { variable: "ROWMILL_SURELY_NOT_SET", ..JOBS_TABLE };
        let error = missing.read().unwrap_err();
        assert_eq!(error.to_string(), "ROWMILL_SURELY_NOT_SET is not set; it must be the name of the jobs table");
    }

    #[test]
    fn a_group_lists_its_settings_including_nested_groups_but_no_constants() {
        let listed: Vec<_> = Example::settings().into_iter().map(|setting| (setting.variable(), setting)).collect();
        let setting = |group, parameter, default: &str| Setting { parameter, default: default.to_owned(), group };
        let expected = [
            ("ROWMILL_EXAMPLE_DELAY_HOURS".to_owned(), setting("Example", "ExampleDelayHours", "2")),
            ("ROWMILL_STALE_SECONDS".to_owned(), setting("Recovery", "StaleSeconds", "900")),
        ];
        assert_eq!(listed, expected);
        assert_eq!(Example::from_env().unwrap(), Example::default(), "nothing is set");
    }
}
