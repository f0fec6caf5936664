# docker/brunt.Dockerfile: brunt from its release, checked against the release's sum.
#
#   docker build -t brunt:local -f docker/brunt.Dockerfile \
#       --build-arg BRUNT_URL=https://…/brunt-0.1.0-x86_64-linux.tar.gz \
#       --build-arg BRUNT_SHA256=… docker/
#
# BRUNT_SHA256 is the archive's line in the release's SHA256SUMS; without it nothing is built.
FROM ubuntu:24.04 AS archive
RUN apt-get update && apt-get install -y --no-install-recommends curl ca-certificates \
    && rm -rf /var/lib/apt/lists/*
ARG BRUNT_URL
ARG BRUNT_SHA256
WORKDIR /archive
RUN curl -fsSL -o brunt.tar.gz "$BRUNT_URL" \
    && echo "$BRUNT_SHA256  brunt.tar.gz" | sha256sum --check --strict \
    && tar --extract --gzip --strip-components=1 --file brunt.tar.gz

FROM ubuntu:24.04
COPY --from=archive /archive/brunt /usr/local/bin/brunt
ENTRYPOINT ["brunt"]
