# toolset/wrk/wrk.dockerfile of TechEmpower's FrameworkBenchmarks, with brunt in place of wrk.
#
# The board's scripts call `wrk` and parse its text; brunt under this name takes the same options
# and prints the same text. Give the release's archive and its line in SHA256SUMS as defaults of the
# two arguments, since the board passes none; without them nothing is built.
FROM ubuntu:24.04

ARG DEBIAN_FRONTEND=noninteractive
ARG BRUNT_URL
ARG BRUNT_SHA256
RUN apt-get update -qq \
    && apt-get install --no-install-recommends -qqUy curl ca-certificates > /dev/null
RUN curl -fsSL -o /tmp/brunt.tar.gz "$BRUNT_URL" \
    && echo "$BRUNT_SHA256  /tmp/brunt.tar.gz" | sha256sum --check --strict \
    && tar --extract --gzip --strip-components=1 --directory=/usr/local/bin \
        --file /tmp/brunt.tar.gz --wildcards '*/brunt' \
    && ln -s brunt /usr/local/bin/wrk

# Required scripts for benchmarking
COPY concurrency.sh pipeline.lua pipeline.sh query.sh ./
