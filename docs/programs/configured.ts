import * as Client from "@skein/client/Client"
import * as ClientPool from "@skein/client/ClientPool"
import * as Credentials from "@skein/client/Credentials"
import * as Middleware from "@skein/client/Middleware"
import * as NodeConfig from "@skein/client/NodeConfig"
import type * as PoolError from "@skein/client/PoolError"
import type * as ServerConfig from "@skein/client/ServerConfig"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"

// #region open
export const open = (
  userFile: string, // "~/.cursor/mcp.json", for example
  workspaceFolder: string,
  ask: (question: string) => Effect.Effect<string>
) =>
  ClientPool.fromConfig([
    NodeConfig.file(userFile, { optional: true }),
    NodeConfig.file(`${workspaceFolder}/.vscode/mcp.json`, {
      workspaceFolder,
      input: ({ description, id }) => ask(description ?? id)
    })
  ], { watchInterval: "2 seconds" })
// #endregion

// #region options
export const withOptions = (file: string, tokenOf: (server: string) => Redacted.Redacted) =>
  ClientPool.fromConfig(NodeConfig.file(file, {
    timeout: (entry) => entry.type === "stdio" && entry.command === "npx" ? "5 minutes" : undefined,
    client: () => ({ info: { name: "my-host", version: "2.1.0" } }),
    stdio: () => ({ shutdownTimeout: "5 seconds" }),
    http: ({ name }) => ({ credentials: Credentials.bearer(tokenOf(name)) })
  }))
// #endregion

export const advice = ({ reason }: PoolError.PoolError): string => {
  switch (reason._tag) {
    case "MissingVariable":
      return `${reason.server} needs ${reason.variable}`
    case "InvalidEntry":
      return `${reason.server} is not started: ${reason.message}`
    default:
      return reason.message
  }
}

// #region asking
export const asking = (source: ClientPool.ConfigSource, ask: (question: string) => Effect.Effect<boolean>) =>
  Effect.gen(function*() {
    const approved = new Set<string>()
    const keyOf = ({ name, raw }: ServerConfig.Entry) => JSON.stringify([name, raw])
    const pool = yield* ClientPool.fromConfig(source, { include: (_, entry) => approved.has(keyOf(entry)) })
    for (const entry of pool.config.excluded) {
      const place = entry.type === "stdio" ? [entry.command, ...entry.args].join(" ") : entry.url
      if (yield* ask(`Start ${entry.name}? ${place}`)) approved.add(keyOf(entry))
    }
    yield* pool.reload
    return pool
  })
// #endregion

export const guarded = (source: ClientPool.ConfigSource, log: (line: string) => Effect.Effect<void>) => {
  const audit: Middleware.Middleware = (next) => (call) =>
    Middleware.isToolCall(call)
      ? Effect.onExit(next(call), ({ _tag }) => log(`${call.server} ${call.params.name}: ${_tag}`))
      : next(call)
  const readOnly: Middleware.Middleware = (next) => (call) =>
    call.server === "files" && Middleware.isToolCall(call, "delete")
      ? Middleware.deny("Nothing may be deleted here. Tell the user which file to delete.")
      : next(call)
  return ClientPool.fromConfig(source, { middleware: [audit, readOnly] })
}

export const rewriting = (source: ClientPool.ConfigSource, secret: string) => {
  const redact: Middleware.Middleware = (next) => (call) =>
    Effect.map(next(call), (result) => JSON.parse(JSON.stringify(result).replaceAll(secret, "[redacted]")))
  // Each client has a cache of its own, because a middleware is applied once per client.
  const cache: Middleware.Middleware = (next) => {
    const results = new Map<string, JsonObject>()
    return (call) => {
      if (!Middleware.isToolCall(call, "exchange_rates")) return next(call)
      const key = JSON.stringify(call.params.arguments)
      const stored = results.get(key)
      return stored === undefined
        ? Effect.tap(next(call), (result) => Effect.sync(() => results.set(key, result)))
        : Effect.succeed(stored)
    }
  }
  return ClientPool.fromConfig(source, { middleware: [redact, cache] })
}

// #region answer
export const answer = (pool: ClientPool.ClientPool["Service"], question: string) =>
  Effect.gen(function*() {
    const toolkit = Client.toolkit(pool, {
      servers: (server) => server !== "untrusted",
      maxTokens: 20_000,
      structuredContent: "beside",
      override: (_, { name }) => name === "q" ? { name: "search_notes", description: "Searches my notes" } : undefined,
      needsApproval: (_, { name }, args) => name === "write" && !String(args["path"]).startsWith("/tmp/")
    })
    const { instructions, omitted, pending } = yield* toolkit
    yield* Effect.logDebug(`${omitted.length} tools left out; not ready: ${pending.join(", ")}`)
    return yield* LanguageModel.generateText({
      prompt: [{ role: "system", content: `Answer briefly.\n\n${instructions}` }, { role: "user", content: question }],
      toolkit
    })
  })
// #endregion

export const follow = (pool: ClientPool.ClientPool["Service"], show: (line: string) => Effect.Effect<void>) =>
  Stream.runForEach(pool.changes, ({ servers, tools }) =>
    Effect.forEach(
      pool.entries.filter(({ name }) => servers.includes(name) || tools.includes(name)),
      ({ name, state }) => show(`${name}: ${state._tag}`),
      { discard: true }
    ))
