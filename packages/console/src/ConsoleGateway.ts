/**
 * The servers behind a gateway as rows of the console: whether each can be reached, why not and when the next attempt follows, how
 * many tools it has, its connections, its processes, and the end of what they have written to stderr. A server can be opened again.
 *
 * stderr may have data of users: it is shown with `showPayloads` only.
 *
 * @example
 * const Program = Console.layer().pipe(
 *   Layer.provide(ConsoleGateway.layer),
 *   Layer.provide(ConsoleSource.ConsoleSources.layer),
 *   Layer.provideMerge(Desk)
 * )
 */
import * as Gateway from "@skein/gateway/Gateway"
import type { Catalog } from "@skein/server/Catalog"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ConsoleSource from "./ConsoleSource.ts"

const restart: ConsoleSource.Action = {
  name: "restart",
  label: "Restart",
  confirm: "Closes the connections and the processes of the server, and opens it again. Calls in progress fail."
}

/** The states of servers as those that the console has a color for. */
const states: Readonly<Record<Gateway.ServerState["state"], ConsoleSource.State>> = {
  connected: "running",
  connecting: "waiting",
  reconnecting: "waiting",
  waiting: "lost",
  ended: "failed"
}

/** A number with its noun. */
const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

const summaryOf = ({ connections, entries, parkedCalls }: Gateway.ServerState): string =>
  [
    count(entries.tools, "tool"),
    ...(entries.resources + entries.resourceTemplates > 0
      ? [count(entries.resources + entries.resourceTemplates, "resource")]
      : []),
    ...(entries.prompts > 0 ? [count(entries.prompts, "prompt")] : []),
    ...(connections > 0 ? [`${count(connections, "connection")} of callers`] : []),
    ...(parkedCalls > 0 ? [`${count(parkedCalls, "call")} waiting for answers`] : [])
  ].join(", ")

/** Why a server is not connected, and when it is tried again. */
const waitsFor = ({ failure, nextAttempt, state }: Gateway.ServerState, now: number): string | undefined => {
  if (state === "connected") return undefined
  const next = nextAttempt === undefined
    ? []
    : [`next attempt in ${Math.max(0, Math.ceil((nextAttempt - now) / 1_000))} s`]
  return [...(failure === undefined ? [] : [failure]), ...next].join("; ") || "its first connection"
}

/** The row of a server, and those of its processes. */
const rowsOf = (
  server: Gateway.ServerState,
  now: number,
  showPayloads: boolean
): ReadonlyArray<ConsoleSource.Node> => {
  const { attempts, info, lastStderr, name, prefix, processes, required, revision, since, state } = server
  const id = `server ${name}`
  return [
    {
      id,
      kind: "server",
      label: name,
      state: states[state],
      waitsFor: waitsFor(server, now),
      summary: summaryOf(server),
      since: since === 0 ? undefined : since,
      details: {
        prefix,
        required,
        attempts,
        ...(revision === undefined ? undefined : { revision }),
        ...(info === undefined ? undefined : { server: `${info.name} ${info.version}` }),
        ...(showPayloads && lastStderr !== undefined ? { lastStderr } : undefined)
      },
      actions: [restart]
    },
    ...processes.map(({ pid, stderr }): ConsoleSource.Node => ({
      id: `process ${name} ${pid}`,
      parent: id,
      kind: "worker",
      label: `process ${pid}`,
      state: "running",
      ...(showPayloads && stderr !== "" ? { details: { stderr } } : undefined)
    }))
  ]
}

/**
 * Shows the servers behind the gateway of the server. It dies if the server has none.
 *
 * @example
 * const Rows = Layer.provideMerge(ConsoleGateway.layer, ConsoleSource.ConsoleSources.layer)
 */
export const layer: Layer.Layer<never, never, ConsoleSource.ConsoleSources | Catalog> = /* @__PURE__ */ Layer.unwrap(
  /* @__PURE__ */ Effect.map(Gateway.current, (gateway) =>
    ConsoleSource.layer({
      name: "gateway",
      read: ({ showPayloads }) =>
        Effect.gen(function*() {
          const now = yield* Clock.currentTimeMillis
          return { nodes: (yield* gateway.servers).flatMap((server) => rowsOf(server, now, showPayloads)) }
        }),
      act: (id, action) =>
        Effect.gen(function*() {
          const server = (yield* gateway.servers).find(({ name }) => `server ${name}` === id)
          if (server === undefined || action !== restart.name) return undefined
          yield* gateway.restart(server.name)
          return { isDone: true, message: `${server.name} is opened again` }
        })
    }))
)
