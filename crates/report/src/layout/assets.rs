//! The files that every page holds, and what its Content-Security-Policy lets in: these alone, by
//! their hashes.

/// The page around its parts, each of which has a name between two brackets.
pub(super) const PAGE: &str = include_str!("assets/page.html");
/// The chart library, as its authors publish it: uPlot 1.6.32 (npm `uplot`, MIT).
pub(super) const UPLOT: Asset = Asset {
    text: include_str!("assets/uPlot.iife.min.js"),
    sha256: "GcjUxq2Ikpp59K5J1vcWFWbf0Lo9FcxJXpdPeH63jx8=",
};
/// The style sheet of uPlot.
pub(super) const UPLOT_STYLE: Asset = Asset {
    text: include_str!("assets/uPlot.min.css"),
    sha256: "32MMao1vjur/JktQ9zzlsRT2Rv/ZoLt08EmwoAE1+gQ=",
};
/// The licence of uPlot, which has to go with it.
pub(super) const UPLOT_LICENCE: &str = include_str!("assets/uPlot.LICENSE");
/// Makes charts of the data of a page.
pub(super) const DATA: Asset = Asset {
    text: include_str!("assets/data.js"),
    sha256: "ZVqMpDkfyjwl75ZEzx2hbxcNKNhT72CLrpDkVCYPoY4=",
};
/// Draws the charts of a page.
pub(super) const CHARTS: Asset = Asset {
    text: include_str!("assets/charts.js"),
    sha256: "JwV90bMAAdZJ6kNCxZOoq8G0pp3BWipVe/xi/pGbwT8=",
};
/// How a page looks; the one place for colours.
pub(super) const STYLE: Asset = Asset {
    text: include_str!("assets/page.css"),
    sha256: "6wPWoEAoZBlTKCzmKaMkGlI/tRtN1pcn0y5fCUM8GXo=",
};

/// A file with the SHA-256 of its bytes, base64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asset {
    pub(super) text: &'static str,
    pub(super) sha256: &'static str,
}

/// What a page may do: run and look as its own files say, and nothing else.
pub(super) fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}' 'sha256-{}' 'sha256-{}'; \
         style-src 'sha256-{}' 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        UPLOT.sha256, DATA.sha256, CHARTS.sha256, UPLOT_STYLE.sha256, STYLE.sha256
    )
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::digest::{SHA256, digest};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_files() {
        for (name, asset) in [
            ("uPlot.iife.min.js", UPLOT),
            ("uPlot.min.css", UPLOT_STYLE),
            ("data.js", DATA),
            ("charts.js", CHARTS),
            ("page.css", STYLE),
        ] {
            let hash = STANDARD.encode(digest(&SHA256, asset.text.as_bytes()));
            assert_eq!(asset.sha256, hash, "{name}: put the hash on the right here");
        }
    }

    #[test]
    fn the_files_of_others_are_those_that_were_published() {
        // Of npm's uplot-1.6.32.tgz: whoever changes the version looks there.
        for (asset, published) in [
            (
                UPLOT,
                "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
            ),
            (
                UPLOT_STYLE,
                "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
            ),
        ] {
            let hash = digest(&SHA256, asset.text.as_bytes());
            let bytes = hash.as_ref().iter();
            let hex: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, published);
        }
        assert!(
            UPLOT
                .text
                .starts_with("/*! https://github.com/leeoniya/uPlot (v1.6.32) */")
        );
    }
}
