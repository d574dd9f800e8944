/**
 * Runs `logs` and `subscribe`, which print until they are interrupted or the connection has ended.
 */
import type { Change, Honoured } from "@skein/client/Changes"
import type * as Client from "@skein/client/Client"
import { ClientError, Closed } from "@skein/client/ClientError"
import type { LoggingMessage } from "@skein/client/Notification"
import * as Revision from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { format, onClient, requestTime, type ServerInvocation } from "../connection/connection.ts"
import { quoteBlock, quoteLine, quoteName } from "../base/format.ts"
import { type CommandFailed, failed, type Process } from "../base/process.ts"

/** A parsed command line of `logs`. */
export interface LogsLine extends ServerInvocation {
  readonly level: LoggingLevel
}

/** A parsed command line of `subscribe`. */
export interface SubscribeLine extends ServerInvocation {
  readonly uris: ReadonlyArray<string>
}

/** The time of a line: `2026-07-28T09:30:00Z`. */
const timeText = (now: number): string => new Date(now).toISOString().replace(/\.\d+Z$/, "Z")

/** Fails because the client has ended: no further message can arrive. */
const ended = (client: Client.Client): Effect.Effect<never, ClientError> =>
  Effect.flatMap(
    client.ended,
    (end) =>
      Effect.fail(new ClientError({ reason: new Closed({ message: "The connection to the server has ended", end }) }))
  )

/** A message of the log. The text of the server cannot begin a line. */
const logLine = ({ params: { data, level, logger } }: LoggingMessage): string => {
  const text = typeof data === "string" ? data : JSON.stringify(data) ?? String(data)
  return `${level.padEnd(9)} ${logger === undefined ? "" : `${quoteName(logger)}: `}${quoteBlock(text.trimEnd())}`
}

const noLogs = (revision: Revision.Revision): string =>
  `In ${revision} a server sends log messages only with the response to a request: use skein call --verbose`

/** `skein logs`. */
export const logs = (line: LogsLine): Effect.Effect<void, CommandFailed, Process> => {
  const { json, level, revision } = line
  if (revision !== undefined && Revision.era(revision) === "stateless") {
    return Effect.fail(failed(2, noLogs(revision)))
  }
  const text = (message: LoggingMessage, now: number): string =>
    json
      ? JSON.stringify({ time: new Date(now).toISOString(), ...message.params })
      : `${timeText(now)}  ${logLine(message)}`
  return onClient(line, function*(client, console) {
    const printing = Stream.runForEach(client.logs, (message) =>
      Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        yield* console.print(yield* format("notifications/message", () => text(message, now)))
      }))
    // The messages are read before the level is set: the server can send some at once.
    const reading = yield* Effect.forkScoped(printing, { startImmediately: true })
    yield* client.setLoggingLevel(level, requestTime(line))
    console.warn(`Printing log messages, level ${level} and above, until interrupted`)
    yield* Fiber.join(reading)
    return yield* ended(client)
  }, {
    client: { revisions: Revision.sessionBased },
    negotiationAdvice: noLogs(Revision.latest)
  })
}

/** The lists and resources of a subscription, in words. */
const wordsOf = ({ prompts, resources, tools, uris }: Honoured): string =>
  [
    ...tools ? ["the list of tools"] : [],
    ...resources ? ["the list of resources"] : [],
    ...prompts ? ["the list of prompts"] : [],
    ...uris.map(quoteName)
  ].join(", ") || "nothing"

const lists: { readonly [tag: string]: string } = {
  ToolListChanged: "tools changed",
  PromptListChanged: "prompts changed",
  ResourceListChanged: "resources changed"
}

/** A change in a line of stdout. Undefined for the states of the subscription. */
const changeText = (change: Change): string | undefined =>
  change._tag === "ResourceUpdated" ? `updated ${quoteLine(change.uri)}` : lists[change._tag]

const gaps = {
  Ended: "The server has ended the subscription; changes may be missed until the next one",
  Lost: "The subscription was lost; changes may be missed until the next one",
  Overflow: "Changes arrived faster than they were printed; some are missing"
} as const

/** A state of the subscription, in a line of stderr. */
const stateText = (change: Change, wanted: ReadonlyArray<string>): string | undefined => {
  if (change._tag === "Subscribed") {
    const refused = wanted.filter((uri) => !change.honoured.uris.includes(uri))
    const without = refused.length === 0 ? "" : `. The server does not report: ${refused.map(quoteName).join(", ")}`
    return `Subscribed to ${wordsOf(change.honoured)}${without}`
  }
  return change._tag === "Gap" ? gaps[change.reason] : undefined
}

/** `skein subscribe`. */
export const subscribe = (line: SubscribeLine): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, { print, warn }) {
    const { timeout } = requestTime(line)
    const filter = { tools: true, resources: true, prompts: true, uris: line.uris }
    yield* Stream.runForEach(client.changes(filter, { timeout }), (change) =>
      Effect.gen(function*() {
        const state = stateText(change, line.uris)
        if (state !== undefined) warn(state)
        const text = changeText(change)
        if (text === undefined) return
        const now = yield* Clock.currentTimeMillis
        yield* print(
          line.json
            ? JSON.stringify({ time: new Date(now).toISOString(), ...change })
            : `${timeText(now)}  ${text}`
        )
      }))
    return yield* ended(client)
  })
