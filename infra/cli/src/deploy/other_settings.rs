//! Settings without a parameter of their own: the command takes them like parameters, and writes `OtherSettings`.

use rowmill_settings::other_settings::{OtherSettings, OtherSettingsError, PARAMETER};

use super::{DeployError, Values};
use crate::template::Template;

/// The parameters to send: the given ones, with the settings among them in `OtherSettings`, beside those that the stack
/// keeps there.
pub(super) fn folded(template: &Template, given: &Values, kept: &Values) -> Result<Values, DeployError> {
    if !template.has_parameter(PARAMETER) {
        return Ok(given.clone());
    }
    let is_whole = given.contains_key(PARAMETER);
    let mut settings = if is_whole { given_whole(template, given)? } else { kept_whole(template, given, kept)? };
    let mut parameters = given.clone();
    for (name, value) in given {
        let Some(allowed) = template.other_setting(name) else { continue };
        if template.default_of(name).as_ref() == Some(value) {
            settings.reset(name);
        } else {
            settings.set(name, value, allowed)?;
        }
        parameters.remove(name);
    }
    // The text of the stack, if it says the same: another one would change each function.
    let same = kept.get(PARAMETER).filter(|_| of(kept).is_ok_and(|kept| kept == settings));
    parameters.insert(PARAMETER.to_owned(), same.cloned().unwrap_or_else(|| settings.text()));
    Ok(parameters)
}

/// What `OtherSettings` is to be as a whole.
fn given_whole(template: &Template, given: &Values) -> Result<OtherSettings, OtherSettingsError> {
    let settings = of(given)?;
    for name in settings.names() {
        let allowed = template.other_setting(name).ok_or_else(|| OtherSettingsError::Unknown(name.to_owned()))?;
        settings.get(name, allowed)?;
    }
    Ok(settings)
}

/// What the stack keeps. A setting that this version does not have is lost, as a parameter would be.
fn kept_whole(template: &Template, given: &Values, kept: &Values) -> Result<OtherSettings, DeployError> {
    let mut settings = of(kept)?;
    let unknown = settings.names().filter(|name| template.other_setting(name).is_none());
    for name in unknown.map(str::to_owned).collect::<Vec<_>>() {
        settings.reset(&name);
    }
    // Stacks of 0.2.0 and before have parameters for them.
    for (name, value) in kept.iter().filter(|(name, value)| !given.contains_key(*name) && !value.is_empty()) {
        let Some(allowed) = template.other_setting(name) else { continue };
        if template.default_of(name).as_ref() != Some(value) {
            settings.set(name, value, allowed).map_err(|source| DeployError::Kept { name: name.clone(), source })?;
        }
    }
    Ok(settings)
}

/// The values of parameters, and of what `OtherSettings` among them holds.
pub(super) fn expanded(template: &Template, parameters: &Values) -> Result<Values, OtherSettingsError> {
    let (settings, mut values) = (of(parameters)?, parameters.clone());
    for name in settings.names() {
        let value = template.other_setting(name).map(|allowed| settings.get(name, allowed)).transpose()?.flatten();
        values.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(values)
}

fn of(parameters: &Values) -> Result<OtherSettings, OtherSettingsError> {
    OtherSettings::parse(parameters.get(PARAMETER).map_or("", String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "{Parameters: {Days: {Default: 7}, OtherSettings: {Default: \"\"}}, \
        Metadata: {OtherSettings: {Stale: {Type: Number, Default: 900, MinValue: 5, MaxValue: 3600}, \
        Owner: {Type: String, Default: local, MinLength: 1, MaxLength: 9}}}}";

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn sent(given: &[(&str, &str)], kept: &[(&str, &str)]) -> Result<Values, String> {
        let template = Template::parse(TEMPLATE).unwrap();
        folded(&template, &values(given), &values(kept)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_is_set_like_a_parameter_beside_those_that_the_stack_keeps() {
        let kept = [("OtherSettings", r#"{"Owner":"ann"}"#)];
        let both = values(&[("Days", "1"), ("OtherSettings", r#"{"Owner":"ann","Stale":20}"#)]);
        assert_eq!(sent(&[("Stale", "20"), ("Days", "1")], &kept), Ok(both));
        assert_eq!(sent(&[], &kept), Ok(values(&kept)));
        assert_eq!(sent(&[("Owner", "local")], &kept), Ok(values(&[("OtherSettings", "")])), "its default");
        let whole = [("OtherSettings", r#"{"Stale":30}"#)];
        assert_eq!(sent(&whole, &kept), Ok(values(&whole)), "the whole parameter is replaced");
    }

    #[test]
    fn a_stack_keeps_a_setting_that_was_a_parameter_before() {
        let kept = [("Stale", "20"), ("Owner", "local"), ("Days", "1")];
        assert_eq!(sent(&[], &kept), Ok(values(&[("OtherSettings", r#"{"Stale":20}"#)])));
        assert_eq!(sent(&[("Stale", "30")], &kept), Ok(values(&[("OtherSettings", r#"{"Stale":30}"#)])));
    }

    #[test]
    fn a_kept_setting_that_this_version_lacks_is_lost_and_one_that_it_refuses_can_be_given_or_reset() {
        let spaced = [("OtherSettings", r#"{ "Stale": 20 }"#)];
        assert_eq!(sent(&[], &spaced), Ok(values(&spaced)), "the same text, so that no function changes");
        let newer = [("OtherSettings", r#"{"Newer":1,"Stale":20}"#)];
        assert_eq!(sent(&[], &newer), Ok(values(&[("OtherSettings", r#"{"Stale":20}"#)])));
        let refused = [("Stale", "9999"), ("Owner", "")];
        assert_eq!(
            sent(&[], &refused).unwrap_err(),
            "the stack keeps a value that this version refuses: Stale is `9999`; it must be a whole number from 5 to \
             3600. Give another one by --parameter, or take the default by --reset Stale"
        );
        assert_eq!(sent(&[("Stale", "900")], &refused), Ok(values(&[("OtherSettings", "")])));
    }

    #[test]
    fn an_unknown_setting_or_a_value_out_of_bounds_is_refused() {
        let refusal = |given: &[(&str, &str)]| sent(given, &[]).unwrap_err();
        assert_eq!(refusal(&[("Stale", "4")]), "Stale is `4`; it must be a whole number from 5 to 3600");
        assert_eq!(
            refusal(&[("OtherSettings", r#"{"Owner": "somebody else"}"#)]),
            "Owner is `somebody else`; it must be a text of 1 to 9 bytes without quotes, backslashes and line breaks"
        );
        assert_eq!(refusal(&[("OtherSettings", r#"{"Stael": 9}"#)]), "OtherSettings has no setting Stael");
        assert!(refusal(&[("OtherSettings", "Stale=9")]).starts_with("OtherSettings is no JSON object"));
    }
}
