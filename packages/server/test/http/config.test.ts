/** The options that environment variables set: `HttpConfig`, and the reading of `NodeHttp.runMain`. */
import { describe, expect, it } from "@effect/vitest"
import * as HttpConfig from "@skein/server/HttpConfig"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as environment from "../../src/internal/base/environment.ts"
import { rows, variables } from "../../src/internal/http/endpoint/variables.ts"
import { ofServers, warnUnknown } from "../../src/internal/process/unknownVariables.ts"
import { logged } from "../kit.ts"
import { globSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const root = join(import.meta.dirname, "../../../..")

const all = {
  SKEIN_PORT: "8080",
  SKEIN_HOST: "0.0.0.0",
  SKEIN_PATH: "/api/mcp",
  SKEIN_ALLOWED_HOSTS: "mcp.example.com, mcp.internal:8080",
  SKEIN_ALLOWED_ORIGINS: "any",
  SKEIN_CORS: "true",
  SKEIN_TRUSTED_PROXIES: "2",
  SKEIN_STATELESS: "true",
  SKEIN_SESSIONS: "home",
  SKEIN_STATE_KEYS: `${"a".repeat(32)}, ${"b".repeat(32)}`,
  SKEIN_LEGACY_SSE: "true",
  SKEIN_ALWAYS_STREAM: "session",
  SKEIN_STREAM_AFTER: "30s",
  SKEIN_REQUIRE_MCP_HEADERS: "true",
  SKEIN_EXPIRED_STREAMS: "keep",
  SKEIN_KEEP_ALIVE_INTERVAL: "0s",
  SKEIN_HEALTH: "true",
  SKEIN_DRAIN_DELAY: "10 seconds",
  SKEIN_SHUTDOWN_TIMEOUT: "1500ms",
  SKEIN_WORKERS: "auto",
  SKEIN_LOG_FORMAT: "json",
  SKEIN_LOG_LEVEL: "debug",
  SKEIN_NODE_REQUESTS_KEYS: "k".repeat(32),
  SKEIN_NODE_REQUESTS_TLS_FOLDER: "/etc/skein/tls",
  SKEIN_NODE_REQUESTS_TLS_NAME: "shop.internal",
  SKEIN_NODE_REQUESTS_HOST: "0.0.0.0",
  SKEIN_NODE_REQUESTS_PORT: "8081",
  SKEIN_NODE_REQUESTS_ADVERTISED_HOST: "10.0.0.7",
  SKEIN_MAX_MESSAGE_BYTES: "1048576",
  SKEIN_MAX_RETAINED_BYTES: "33554432",
  SKEIN_MAX_IN_FLIGHT_REQUESTS: "100",
  SKEIN_MAX_STREAMS: "50",
  SKEIN_MAX_SESSIONS: "200",
  SKEIN_MAX_SESSIONS_PER_PRINCIPAL: "20",
  SKEIN_IDLE_TIMEOUT: "10m",
  SKEIN_REQUEST_TIMEOUT: "30s",
  SKEIN_KEEP_ALIVE_TIMEOUT: "90s",
  SKEIN_MAX_CONNECTIONS: "500"
}

const read = {
  port: 8080,
  host: "0.0.0.0",
  path: "/api/mcp",
  allowedHosts: ["mcp.example.com", "mcp.internal:8080"],
  allowedOrigins: "any",
  cors: variables.cors.parse("true"),
  trustedProxies: 2,
  stateless: true,
  sessions: "home",
  stateKeys: [Redacted.make("a".repeat(32)), Redacted.make("b".repeat(32))],
  legacySse: { path: "/sse", messages: "/messages", assumeInitialized: true },
  alwaysStream: "session",
  streamAfter: Duration.seconds(30),
  requireMcpHeaders: true,
  expiredStreams: "keep",
  keepAliveInterval: Duration.zero,
  health: true,
  drainDelay: Duration.seconds(10),
  shutdownTimeout: Duration.millis(1_500),
  workers: "auto",
  logFormat: "json",
  logLevel: "Debug",
  nodeRequests: {
    keys: [Redacted.make("k".repeat(32))],
    tlsFolder: "/etc/skein/tls",
    tlsName: "shop.internal",
    host: "0.0.0.0",
    port: 8081,
    advertisedHost: "10.0.0.7"
  },
  limits: {
    maxMessageBytes: 1_048_576,
    maxRetainedBytes: 33_554_432,
    maxInFlightRequests: 100,
    maxStreams: 50,
    maxSessions: 200,
    maxSessionsPerPrincipal: 20,
    idleTimeout: Duration.minutes(10),
    requestTimeout: Duration.seconds(30),
    keepAliveTimeout: Duration.seconds(90),
    maxConnections: 500
  }
} as const

const fillIn = (
  options: object,
  env: Record<string, string>,
  prefix?: string | false,
  of: environment.Variables = variables
) => environment.fillIn(options, of, env, prefix)

const parse = (env: Record<string, string>, prefix?: string) =>
  HttpConfig.config(prefix).parse(ConfigProvider.fromEnv({ env }))

const wrong: ReadonlyArray<readonly [name: string, value: string, message: string]> = [
  ["PORT", "80x", "SKEIN_PORT is \"80x\": expected a port, from 0 to 65535"],
  ["PORT", "65536", "SKEIN_PORT is \"65536\": expected a port, from 0 to 65535"],
  ["PORT", "-1", "SKEIN_PORT is \"-1\": expected a port, from 0 to 65535"],
  ["WORKERS", "0", "SKEIN_WORKERS is \"0\": expected auto or a number from 1"],
  ["HOST", "a b", "SKEIN_HOST is \"a b\": expected an address or a name"],
  ["PATH", "mcp", "SKEIN_PATH is \"mcp\": expected a path that begins with a slash"],
  ["ALLOWED_HOSTS", "a,,b", "SKEIN_ALLOWED_HOSTS is \"a,,b\": expected names, separated by commas, or any"],
  ["TRUSTED_PROXIES", "1.5", "SKEIN_TRUSTED_PROXIES is \"1.5\": expected a whole number"],
  ["STATELESS", "1", "SKEIN_STATELESS is \"1\": expected true or false"],
  [
    "STATE_KEYS",
    `${"a".repeat(32)},secret`,
    "SKEIN_STATE_KEYS has a key that is too short (number 2): expected keys of at least 32 bytes, separated by commas, " +
    "such as the output of openssl rand -base64 32"
  ],
  ["SESSIONS", "away", "SKEIN_SESSIONS is \"away\": expected one of anywhere, home"],
  [
    "NODE_REQUESTS_KEYS",
    "secret",
    "SKEIN_NODE_REQUESTS_KEYS has a key that is too short (number 1): expected keys of at least 32 bytes, separated by " +
    "commas, such as the output of openssl rand -base64 32"
  ],
  ["NODE_REQUESTS_TLS_NAME", "a b", "SKEIN_NODE_REQUESTS_TLS_NAME is \"a b\": expected a DNS name"],
  ["NODE_REQUESTS_PORT", "x", "SKEIN_NODE_REQUESTS_PORT is \"x\": expected a port, from 0 to 65535"],
  ["CORS", "https://app.example.com", "SKEIN_CORS is \"https://app.example.com\": expected true or false"],
  ["ALWAYS_STREAM", "never", "SKEIN_ALWAYS_STREAM is \"never\": expected true, false or session"],
  ["EXPIRED_STREAMS", "drop", "SKEIN_EXPIRED_STREAMS is \"drop\": expected one of end, keep"],
  ["MAX_SESSIONS", "many", "SKEIN_MAX_SESSIONS is \"many\": expected a whole number"],
  [
    "IDLE_TIMEOUT",
    "600",
    "SKEIN_IDLE_TIMEOUT is \"600\": expected a duration, such as 10s or \"10 seconds\""
  ],
  ["HEALTH", "yes", "SKEIN_HEALTH is \"yes\": expected true or false"],
  ["DRAIN_DELAY", "10", "SKEIN_DRAIN_DELAY is \"10\": expected a duration, such as 10s or \"10 seconds\""],
  ["DRAIN_DELAY", "2 moons", "SKEIN_DRAIN_DELAY is \"2 moons\": expected a duration, such as 10s or \"10 seconds\""],
  ["LOG_FORMAT", "xml", "SKEIN_LOG_FORMAT is \"xml\": expected one of pretty, json, logfmt"],
  [
    "LOG_LEVEL",
    "a\nb",
    "SKEIN_LOG_LEVEL is \"a\\u{a}b\": expected one of All, Fatal, Error, Warn, Info, Debug, Trace, None"
  ]
]

describe("HttpConfig.config", () => {
  it.effect("reads every variable", () =>
    Effect.gen(function*() {
      expect(Object.keys(all)).toEqual(rows().map(({ name }) => `SKEIN_${name}`))
      expect(yield* parse(all)).toEqual(read)
    }))

  it.effect("leaves out missing and empty variables", () =>
    Effect.gen(function*() {
      expect(yield* parse({})).toEqual({})
      expect(yield* parse({ SKEIN_HOST: "" })).toEqual({})
      expect(yield* parse({ SKEIN_CORS: "false", SKEIN_LEGACY_SSE: "false" })).toEqual({})
    }))

  it.effect("reads PORT if SKEIN_PORT is missing", () =>
    Effect.gen(function*() {
      expect(yield* parse({ PORT: "8080" })).toEqual({ port: 8080 })
      expect(yield* parse({ PORT: "8080", SKEIN_PORT: "" })).toEqual({ port: 8080 })
      expect(yield* parse({ PORT: "8080", TEA_PORT: "1" }, "TEA_")).toEqual({ port: 1 })
      expect((yield* Effect.flip(parse({ PORT: "tcp" }))).cause.message)
        .toBe("PORT is \"tcp\": expected a port, from 0 to 65535")
    }))

  it.effect("reads variables with another prefix", () =>
    Effect.gen(function*() {
      expect(yield* parse({ TEA_PORT: "1", SKEIN_HOST: "a" }, "TEA_")).toEqual({ port: 1 })
    }))

  it.effect.each(wrong)(
    "fails for %s=%j with one line that names both",
    ([name, value, message]) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(parse({ [`SKEIN_${name}`]: value }))
        expect(error).toBeInstanceOf(Config.ConfigError)
        expect(error.cause.message).toBe(message)
      })
  )

  it.live("is used by a layer", () =>
    Effect.scoped(Effect.gen(function*() {
      const env = { SKEIN_PORT: "0", SKEIN_PATH: "/api", SKEIN_HEALTH: "true" }
      const listening = Layer.unwrap(Effect.map(HttpConfig.config(), (options) => NodeHttp.layer(options))).pipe(
        Layer.provide([fixtures.server(fixtures.echo), ConfigProvider.layer(ConfigProvider.fromEnv({ env }))])
      )
      const server = Context.get(yield* Layer.build(listening), NodeHttp.Server)
      expect(server.url).toMatch(/\/api$/)
      expect((yield* kit.send(server, { method: "GET", path: "/livez" })).status).toBe(200)
    })))
})

describe("fillIn", () => {
  it("reads every variable, and keeps the options of the code", () => {
    expect(fillIn({}, all)).toEqual(read)
    const given = { port: 0, health: false, allowedHosts: undefined }
    expect(fillIn(given, all)).toEqual({ ...read, port: 0, health: false })
  })

  it("keeps the limits and the members of nodeRequests that are in the code", () => {
    expect(fillIn({ limits: { idleTimeout: "1 hour", maxSessions: undefined } }, all))
      .toEqual({ ...read, limits: { ...read.limits, idleTimeout: "1 hour" } })
    expect(fillIn({ nodeRequests: { keys: ["k"] } }, { SKEIN_NODE_REQUESTS_PORT: "1", SKEIN_NODE_REQUESTS_KEYS: "x" }))
      .toEqual({ nodeRequests: { keys: ["k"], port: 1 } })
    const given = { limits: { maxStreams: 0 } }
    expect(fillIn(given, { SKEIN_MAX_STREAMS: "1" })).toEqual(given)
    expect(fillIn({ cors: "mine" }, { SKEIN_CORS: "false" })).toEqual({ cors: "mine" })
  })

  it("reads the port of the code, of SKEIN_PORT and of PORT, in this order", () => {
    const env = { PORT: "3", SKEIN_PORT: "2" }
    expect(fillIn({ port: 1 }, env)).toEqual({ port: 1 })
    expect(fillIn({}, env)).toEqual({ port: 2 })
    expect(fillIn({}, { PORT: "3" })).toEqual({ port: 3 })
    expect(fillIn({}, { PORT: "3", SKEIN_PORT: " " })).toEqual({ port: 3 })
    expect(fillIn({}, { PORT: "3" }, "TEA_")).toEqual({ port: 3 })
    expect(fillIn({}, { PORT: "3" }, false)).toEqual({})
    expect(fillIn({}, { PORT: "tcp" })).toBe("PORT is \"tcp\": expected a port, from 0 to 65535")
    expect(fillIn({}, { ...env, PORT: "tcp" })).toEqual({ port: 2 })
  })

  it("does not parse a variable whose option is in the code", () => {
    expect(fillIn({ port: 1 }, { SKEIN_PORT: "80x" })).toEqual({ port: 1 })
  })

  it.each(wrong)("returns a line for %s=%j", (name, value, message) => {
    expect(fillIn({}, { [`SKEIN_${name}`]: value })).toBe(message)
  })

  it("reads no variable with `false`, and others with a prefix", () => {
    expect(fillIn({}, all, false)).toEqual({})
    expect(fillIn({}, { ...all, TEA_PORT: "1" }, "TEA_")).toEqual({ port: 1 })
    // PATH is the search path of the shell.
    expect(fillIn({}, { PATH: "/bin" }, "")).toBe("The option environment is \"\": expected a prefix such as SKEIN_")
  })

  it("reads only the variables of logs for a server on stdio", () => {
    expect(fillIn({}, { ...all, SKEIN_PORT: "80x" }, undefined, environment.logVariables)).toEqual({
      logFormat: "json",
      logLevel: "Debug"
    })
  })
})

describe("variables without a meaning", () => {
  const warning = (...names: ReadonlyArray<string>) =>
    logged((lines) => Effect.map(warnUnknown(names, "SKEIN_"), () => lines.map((line) => line.trim())))

  it.effect("are named in one warning, with the variable that was meant", () =>
    Effect.gen(function*() {
      expect(yield* warning("PATH", "SKEIN_POTR", "SKEIN_HELTH", "SKEIN_WHATEVER", "SKEIN_PORT")).toEqual([
        "Unknown variables, which have no effect: SKEIN_POTR (did you mean SKEIN_PORT?), " +
        "SKEIN_HELTH (did you mean SKEIN_HEALTH?), SKEIN_WHATEVER"
      ])
      expect(yield* warning("SKEIN_x\n")).toEqual([expect.stringContaining("SKEIN_x\\u{a}")])
    }))

  it.effect("do not include those of servers, and of all other programs of this repository", () =>
    Effect.gen(function*() {
      expect(ofServers.toSorted()).toEqual(rows().map(({ name }) => name).toSorted())
      const files = globSync("{packages/*/{src,templates},docs,examples,scripts,.ci}/**/*", {
        cwd: root,
        exclude: (path) => /node_modules|(^|\/)(test|messages|renamed\.md|unknownVariables\.ts)$/.test(path)
      }).filter((path) => statSync(join(root, path)).isFile())
      const used = new Set(
        files.flatMap((path) => readFileSync(join(root, path), "utf8").match(/\bSKEIN_[A-Z_]+\b/g) ?? [])
      )
      expect(used.has("SKEIN_TASKS")).toBe(true)
      // It is removed before the variables are checked.
      expect(used.delete("SKEIN_WORKER")).toBe(true)
      // The mistake in the guide.
      expect(used.delete("SKEIN_POTR")).toBe(true)
      expect(yield* warning(...used)).toEqual([])
    }))
})
