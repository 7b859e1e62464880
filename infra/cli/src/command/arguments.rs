//! Values of arguments that several commands have: spans, words of the API.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::SpanRelativeTo;
use rowmill_core::words::Word;

use crate::follow::Patience;

/// The time to wait for an API that does not answer, or for a job without progress.
#[derive(Debug, Clone, clap::Args)]
pub struct PatienceArgs {
    /// Give up when the API has not answered for this long
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span)]
    pub answer_timeout: Duration,
    /// Give up when the job has made no progress for this long
    #[arg(long, value_name = "SPAN", default_value = "20m", value_parser = parse_span)]
    pub stall_timeout: Duration,
}

impl PatienceArgs {
    pub(super) fn patience(&self) -> Patience {
        Patience { unanswered: self.answer_timeout, unchanged: self.stall_timeout, listens: true }
    }
}

/// Parses a duration of at least one second: `90s`, `30m`, `4h`, `1h30m`, `7d`. A day has 24 hours.
pub(super) fn parse_span(text: &str) -> Result<Duration, String> {
    let expected = |_| "expected a duration such as 90s, 30m, 4h or 7d";
    let span: jiff::Span = text.parse().map_err(expected)?;
    match Duration::try_from(span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(expected)?) {
        Ok(span) if span.as_secs() > 0 => Ok(span),
        _ => Err("expected at least one second".to_owned()),
    }
}

/// Parses one of these words of the API.
pub(super) fn word_parser<W, const N: usize>(words: [W; N]) -> impl TypedValueParser<Value = W>
where
    W: Word + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.map(W::as_str))
        .map(move |word| words.into_iter().find(|known| known.as_str() == word).expect("one of the possible values"))
}

/// The name of a value on the command line, which the API uses too.
pub(super) fn word_of(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().expect("no value is hidden").get_name().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let seconds = |text| parse_span(text).map(|span| span.as_secs());
        assert_eq!(seconds("4h"), Ok(14_400));
        assert_eq!(seconds("1h30m"), Ok(5_400));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("1d12h"), Ok(129_600));
        assert_eq!(seconds("3650d"), Ok(315_360_000));
        for wrong in ["1y", "2mo", "", "4", "-4h", "0s", "10ms", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
