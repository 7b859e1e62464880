//! Every file of the fuzzing corpus, also those that once broke a decoder, decodes or ends in an error.

use acceptance::fuzz::check::check;
use acceptance::fuzz::memory::Counting;
use acceptance::fuzz::{Corpus, Decoder};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn every_file_of_the_corpus_ends_in_text_or_an_error() {
    let corpus = Corpus::read().expect("the corpus can be read");
    for decoder in Decoder::ALL {
        assert!(!corpus.files(decoder).is_empty(), "{decoder:?} has no files");
        for (path, bytes) in corpus.files(decoder) {
            assert_eq!(check(decoder, bytes), Ok(()), "{}", path.display());
        }
    }
}

#[test]
fn the_input_of_a_seed_is_always_the_same() {
    let corpus = Corpus::read().expect("the corpus can be read");
    for seed in 0..300 {
        let (decoder, input) = corpus.input(seed);
        assert_eq!(corpus.input(seed), (decoder, input.clone()));
        assert_eq!(check(decoder, &input), Ok(()), "seed {seed}");
    }
}
