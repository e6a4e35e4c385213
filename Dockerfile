# The static program alone, for CPUs:
#
#   docker build -t rubicon . && docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/work" rubicon train -c run.yaml
FROM golang:1.26-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags nodl -o /rubicon ./cmd/rubicon

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /rubicon /rubicon
# Embedded models and downloads go into the mounted folder: there is no other that can be written to.
ENV XDG_CACHE_HOME=/work/.cache
WORKDIR /work
ENTRYPOINT ["/rubicon"]
