/**
 * Runs `read`, `prompt`, `complete` and `ping`: requests whose result is printed.
 */
import type * as Client from "@skein/client/Client"
import { ClientError, Timeout } from "@skein/client/ClientError"
import type { AnyResourceContents } from "@skein/protocol/Content"
import type { PromptMessage } from "@skein/protocol/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { exitCode, format, onClient, requestTime, type ServerInvocation } from "../connection/connection.ts"
import { blockText, firstArguments, quoteLine, quoteName, sanitize } from "../base/format.ts"
import { writeBytes } from "../base/nodeFiles.ts"
import { type CommandFailed, type Console, failed, type Process } from "../base/process.ts"
import { decodeBase64 } from "./attachments.ts"
import { suggesting } from "../connection/suggestion.ts"

/** A parsed command line of `read`. */
export interface ReadLine extends ServerInvocation {
  readonly uri: string
  /** The file for the contents. */
  readonly output: string | undefined
}

/** A parsed command line of `prompt`. */
export interface PromptLine extends ServerInvocation {
  readonly name: string
  readonly args: Readonly<Record<string, string>> | undefined
}

/** A parsed command line of `complete`. */
export interface CompleteLine extends ServerInvocation {
  /** The name of a prompt, or a URI template. */
  readonly of: string
  readonly argument: string
  readonly typed: string
  readonly with: Readonly<Record<string, string>>
}

/** A parsed command line of `ping`. */
export interface PingLine extends ServerInvocation {
  readonly count: number
  /** Between two requests, in milliseconds. */
  readonly interval: number
}

const asJson = (value: unknown): string => JSON.stringify(value, undefined, 2)

/** The bytes of binary contents. Undefined for text. */
const bytesOf = (content: AnyResourceContents): Effect.Effect<Uint8Array | undefined, ClientError> =>
  "blob" in content
    ? decodeBase64(content.blob, `The contents of ${quoteName(content.uri)} are`)
    : Effect.succeed(undefined)

const describeBytes = ({ mimeType = "application/octet-stream", uri }: AnyResourceContents, bytes: Uint8Array) =>
  `${quoteName(uri)} is binary (${quoteName(mimeType)}, ${bytes.length} bytes)`

const save = (file: string, contents: ReadonlyArray<AnyResourceContents>, { warn }: Console) =>
  Effect.gen(function*() {
    const [content, ...more] = contents
    if (content === undefined || more.length > 0) {
      const report = `--output takes one content, and the server returned ${contents.length}. Use --json to see them`
      return yield* failed(2, report)
    }
    const bytes = (yield* bytesOf(content)) ?? new TextEncoder().encode("text" in content ? content.text : "")
    yield* Effect.mapError(writeBytes(file, bytes), ({ message }) => failed(2, message))
    warn(`Wrote ${bytes.length} bytes to ${sanitize(file)}`)
  })

const contentText = (content: AnyResourceContents): string =>
  blockText({ type: "resource", resource: content } as Parameters<typeof blockText>[0])

/** Prints text. One binary content goes to a pipe or a file as it is, and never to a terminal. */
const show = (contents: ReadonlyArray<AnyResourceContents>, { isTerminal, print, printBytes, warn }: Console) =>
  Effect.gen(function*() {
    const [content, ...more] = contents
    if (content === undefined) return warn("The resource has no contents")
    const bytes = more.length === 0 ? yield* bytesOf(content) : undefined
    if (bytes === undefined) return yield* print(contents.map(contentText).join("\n"))
    if (isTerminal === true || printBytes === undefined) {
      return yield* failed(2, `${describeBytes(content, bytes)}: write it to a file with --output <file>`)
    }
    yield* printBytes(bytes)
  })

/** `skein read`. */
export const read = (line: ReadLine): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, console) {
    const result = yield* client.readResource(line.uri, requestTime(line))
    if (line.output !== undefined) yield* save(line.output, result.contents, console)
    else if (!line.json) return yield* show(result.contents, console)
    if (line.json) yield* console.print(yield* format(line.uri, () => asJson(result)))
  })

/** A message of a prompt. Its lines are indented, so that none can pass for the beginning of another message. */
const messageText = ({ content, role }: PromptMessage): string =>
  `${role}:\n${blockText(content).split(/\r?\n/).map((line) => `  ${line}`.trimEnd()).join("\n")}`

/** `skein prompt`. */
export const prompt = (line: PromptLine): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, { print, warn }) {
    const names = Effect.map(client.listPrompts(requestTime(line)), (prompts) => prompts.map(({ name }) => name))
    const result = yield* suggesting(
      client.getPrompt(line.name, line.args, requestTime(line)),
      line.name,
      names
    )
    if (line.json) return yield* print(yield* format(line.name, () => asJson(result)))
    return result.messages.length === 0
      ? warn("The prompt has no messages")
      : yield* print(result.messages.map(messageText).join("\n"))
  })

/** The names of the arguments of a prompt, or of the variables of a template, as the server lists them. */
const argumentNames = (client: Client.Client, { of, ...line }: CompleteLine) =>
  isTemplate(of)
    ? Effect.succeed(Array.from(of.matchAll(/[{,][+#./;?&]?([\w.%]+)/g), ([, name]) => name!))
    : Effect.map(client.listPrompts(requestTime(line)), (prompts) =>
      prompts.find(({ name }) => name === of)?.arguments?.map(({ name }) => name) ?? [])

const isTemplate = (text: string): boolean => /\{|:\/\//.test(text)

/** The argument and its text, also as one word of the form name=value. */
const typedIn = ({ argument, typed }: CompleteLine): readonly [argument: string, value: string] => {
  const [, name, value] = (typed === "" && /^([^=]+)=(.*)$/s.exec(argument)) || []
  return [name ?? argument, value ?? typed]
}

/** `skein complete`. */
export const complete = (line: CompleteLine): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, { print, warn }) {
    const { of } = line
    const [argument, value] = typedIn(line)
    const completing = client.complete({
      ref: isTemplate(of) ? { type: "ref/resource", uri: of } : { type: "ref/prompt", name: of },
      argument: { name: argument, value },
      ...Object.keys(line.with).length === 0 ? {} : { contextArguments: line.with },
      ...requestTime(line)
    })
    const result = yield* Effect.tapError(
      completing,
      (error) =>
        error.reason._tag !== "ProtocolError" ? Effect.void : Effect.map(
          Effect.orElseSucceed(argumentNames(client, line), (): ReadonlyArray<string> => []),
          (names) => {
            if (names.length === 0 || names.includes(argument)) return
            warn(`The arguments of ${quoteName(of)} are ${firstArguments(names, quoteName).join(", ")}`)
          }
        )
    )
    if (line.json) return yield* print(yield* format(of, () => asJson(result.completion)))
    const { hasMore, total, values } = result.completion
    if (values.length === 0) warn("The server has no suggestions")
    else yield* print(values.map(quoteLine).join("\n"))
    const left = total === undefined ? 0 : total - values.length
    if (left > 0) warn(`The server has ${left} more`)
    else if (hasMore === true) warn("The server has more")
  })

const milliseconds = (time: number): string => `${time.toFixed(time < 10 ? 2 : 1)} ms`

/** The times of the answers in a line. */
const summary = (times: ReadonlyArray<number>, sent: number): string => {
  const count = `${times.length} of ${sent} answered`
  if (times.length === 0) return count
  const least = times.reduce((one, other) => Math.min(one, other))
  const most = times.reduce((one, other) => Math.max(one, other))
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length
  return `${count}: ${milliseconds(least)} at least, ${milliseconds(mean)} on average, ${milliseconds(most)} at most`
}

/** `skein ping`. */
export const ping = (line: PingLine): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, { print, warn }) {
    const times: Array<number> = []
    for (let sent = 1; sent <= line.count; sent++) {
      if (sent > 1) yield* Effect.sleep(line.interval)
      const begun = yield* Clock.currentTimeNanos
      // A request that is sent again after a reconnect would measure the reconnect.
      const failure = yield* client.ping({ ...requestTime(line), retry: false }).pipe(
        Effect.as(undefined),
        Effect.catch((error) => error.reason._tag === "Timeout" ? Effect.succeed(error) : Effect.fail(error))
      )
      const time = Number((yield* Clock.currentTimeNanos) - begun) / 1e6
      if (failure === undefined) times.push(time)
      if (line.json) continue
      if (failure === undefined) yield* print(`${sent}  ${milliseconds(time)}`)
      else warn(`${sent}  no answer in ${milliseconds(time)}`)
    }
    if (line.json) {
      yield* print(asJson({ protocolVersion: client.revision, sent: line.count, answered: times.length, times }))
    } else yield* print(summary(times, line.count))
    const timeout = new ClientError({ reason: new Timeout({ message: "Some requests were not answered" }) })
    return times.length === line.count ? 0 : exitCode(timeout)
  })
