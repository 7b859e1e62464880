//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{BUCKET, FileLimits, JobTargets, LIVE_URL, SettingsGroup};

use crate::limits::PageSettings;

pub static FUNCTION: Function = Function {
    name: "web",
    purpose: "The page. Its role allows its log only: it signs one link, to learn the origin of links, and never uses \
              it.",
    triggers: &[Trigger::Http],
    settings: &[PageSettings::GROUP, FileLimits::GROUP, JobTargets::GROUP],
    uses: &[Use::names(&[BUCKET, LIVE_URL])],
    ..Function::DEFAULT
};
