/**
 * Runs `inspect`: what a server offers, as tables or as JSON. All texts of the server are made printable.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import type { Implementation } from "@skein/protocol/Implementation"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import * as Revision from "@skein/protocol/Revision"
import type { Tool } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import type { Colors } from "../base/colors.ts"
import type { Server } from "../connection/config.ts"
import {
  connect,
  exitCode,
  format,
  onClient,
  requestTime,
  type ServerInvocation,
  within
} from "../connection/connection.ts"
import { argumentsOf, firstArguments, quoteBlock, quoteLine, quoteName, sanitize } from "../base/format.ts"
import { type CommandFailed, Process } from "../base/process.ts"
import { cell, denseTable } from "../base/textTable.ts"
import { lintTable, lintTools } from "./lint.ts"
import { ServerWarnings, warningsText } from "./serverWarnings.ts"
import { cardTable, cardText, differencesOf, discover, type Found } from "./discovery.ts"

const parts = ["info", "tools", "resources", "templates", "prompts"] as const

/** A parsed command line of `inspect`: which parts of the server are shown. None selected: all. */
export interface InspectLine extends ServerInvocation, Readonly<Record<typeof parts[number], boolean>> {
  /** Whether the schemas of the tools are compared with what providers of models accept. */
  readonly lint: boolean
}

/** A capability with the settings that it has turned on: `resources (listChanged, subscribe)`. */
const capabilityText = (name: string, settings: unknown): string => {
  const on = isObject(settings) ? Object.keys(settings).filter((key) => settings[key] !== false).toSorted() : []
  return on.length === 0 ? quoteName(name) : `${quoteName(name)} (${on.slice(0, 16).map(quoteName).join(", ")})`
}

const named = (members: object | undefined): string =>
  Object.entries(members ?? {}).toSorted(([a], [b]) => a < b ? -1 : 1).map(([name, value]) =>
    capabilityText(name, value)
  ).join(", ")

const nameOf = (server: Implementation | undefined): string =>
  server === undefined ? "an unnamed server" : quoteName(`${server.name} ${server.version}`)

/** The name, the capabilities and the instructions of the server, as text. */
export const infoText = (
  { capabilities, era, instructions = "", revision, server }: Pick<
    Client.Client,
    "capabilities" | "era" | "instructions" | "revision" | "server"
  >,
  supported: ReadonlyArray<string> = []
): string => {
  const { experimental, extensions, ...standard } = capabilities
  const rows = [
    ["Title", server?.title === undefined ? "" : cell(server.title)],
    ["Website", server?.websiteUrl === undefined ? "" : cell(server.websiteUrl)],
    ["Protocol", `${revision}${era === "stateless" ? ", stateless" : ", with a session"}`],
    ["Revisions", supported.join(", ")],
    ["Capabilities", named(standard) || "none"],
    ["Experimental", named(experimental)],
    ["Extensions", Object.keys(extensions ?? {}).toSorted().map(quoteName).join(", ")],
    ["Instructions", quoteBlock(instructions.trim())]
  ] as const
  return [
    nameOf(server),
    ...rows.flatMap(([name, text]) => text === "" ? [] : [`  ${name.padEnd(13)} ${text}`])
  ].join("\n")
}

/** The first line of a description. The others are for a model, and in the output of `--json`. */
const about = (text = ""): string => cell(text.trim().split(/\r?\n/, 1)[0]!)

/** An item with its arguments below each other. */
const itemRows = (
  name: string,
  args: ReadonlyArray<string>,
  description: string | undefined
): ReadonlyArray<ReadonlyArray<string>> => [
  [cell(name), args[0] === undefined ? "" : cell(args[0]), about(description)],
  ...args.slice(1).map((each) => ["", cell(each), ""])
]

export const toolTable = (tools: ReadonlyArray<Tool>, colors?: Colors): string =>
  denseTable(
    ["TOOL", "ARGUMENTS", "DESCRIPTION"],
    tools.flatMap((tool) => itemRows(tool.name, argumentsOf(tool), tool.description ?? tool.title)),
    colors
  )

export const promptTable = (prompts: ReadonlyArray<Prompt>, colors?: Colors): string =>
  denseTable(
    ["PROMPT", "ARGUMENTS", "DESCRIPTION"],
    prompts.flatMap(({ arguments: args = [], description, name, title }) =>
      itemRows(
        name,
        firstArguments(args, (each) => each.required === true ? each.name : `${each.name}?`),
        description ?? title
      )
    ),
    colors
  )

export const resourceTable = (
  resources: ReadonlyArray<Omit<Resource, "icons" | "annotations">>,
  colors?: Colors,
  head = "RESOURCE"
): string =>
  denseTable(
    [head, "NAME", "TYPE", "BYTES", "DESCRIPTION"],
    resources.map(({ description, mimeType = "", name, size, title, uri }) => [
      cell(uri),
      cell(title ?? (name === uri ? "" : name)),
      cell(mimeType),
      size === undefined ? "" : String(size),
      about(description)
    ]),
    colors
  )

export const templateTable = (templates: ReadonlyArray<ResourceTemplate>, colors?: Colors): string =>
  resourceTable(
    templates.map(({ uriTemplate: uri, ...template }) => ({ ...template, uri })),
    colors,
    "RESOURCE TEMPLATE"
  )

/** A list of the server. `member` is its name in JSON. `request` returns the items, and how they are shown. */
const listOf = <A>(
  member: string,
  name: string,
  capability: object | undefined,
  items: Effect.Effect<ReadonlyArray<A>, ClientError>,
  table: (items: ReadonlyArray<A>, colors: Colors | undefined) => string
) => ({
  member,
  name,
  isDeclared: capability !== undefined,
  request: Effect.map(items, (items) => ({ items, text: (colors: Colors | undefined) => table(items, colors) }))
})

const listsOf = (client: Client.Client, line: InspectLine): Readonly<Record<string, ReturnType<typeof listOf>>> => {
  const { prompts, resources, tools } = client.capabilities
  const time = requestTime(line)
  const templates = client.listResourceTemplates(time)
  return {
    tools: listOf("tools", "tools", tools, client.listTools(time), toolTable),
    resources: listOf("resources", "resources", resources, client.listResources(time), resourceTable),
    templates: listOf("resourceTemplates", "resource templates", resources, templates, templateTable),
    prompts: listOf("prompts", "prompts", prompts, client.listPrompts(time), promptTable)
  }
}

/** How long the further connections may take, all at the same time, in milliseconds. */
const maxProbeTime = 5_000

// How many versions a server may name in `server/discover`.
const maxVersions = 16

/** Whether a connection with one revision only succeeds. Undefined: the server did not answer in time. */
const supports = (server: Server, revision: Revision.Revision, invocation: ServerInvocation) =>
  Effect.scoped(connect(server, { ...invocation, revision })).pipe(
    Effect.as(true),
    Effect.catch(({ reason }) => Effect.succeed(reason._tag === "NegotiationFailed" ? false : undefined)),
    Effect.timeoutOrElse({
      duration: Math.min(maxProbeTime, invocation.timeout ?? maxProbeTime),
      orElse: () => Effect.succeed(undefined)
    })
  )

/**
 * The revisions of a server, and those of which it is unknown. A server of 2026-07-28 lists them in `server/discover`.
 * For another one with a URL, each revision of sessions is tried with a connection of its own, since `initialize` has the
 * answer to one revision only. A server on stdio is not started again: starting it several times at once can do harm.
 */
const supportedRevisions = Effect.fnUntraced(function*(
  client: Client.Client,
  server: Server,
  invocation: ServerInvocation
): Effect.fn.Return<{ readonly supported: ReadonlyArray<string>; readonly unknown: ReadonlyArray<string> }> {
  const { era, revision } = client
  if (era === "stateless") {
    const listed = yield* Effect.result(client.request(Method.Discover, {}, requestTime(invocation)))
    const versions = listed._tag === "Success" ? listed.success.supportedVersions : [revision]
    return { supported: versions.slice(0, maxVersions).map(quoteName).toSorted(), unknown: [] }
  }
  if (invocation.target._tag !== "Url") return { supported: [revision], unknown: [] }
  // Without --revision the client has tried 2026-07-28 before it opened a session.
  const candidates = invocation.revision === undefined ? Revision.sessionBased : Revision.all
  const tried = yield* Effect.forEach(
    candidates,
    (each) =>
      Effect.map(
        each === revision ? Effect.succeed(true) : supports(server, each, invocation),
        (isSupported) => ({ revision: each, isSupported })
      ),
    { concurrency: "unbounded" }
  )
  const those = (is: boolean | undefined) =>
    tried.flatMap(({ isSupported, revision }) => isSupported === is ? [revision] : [])
  return { supported: those(true), unknown: those(undefined) }
})

const isMethodNotFound = ({ reason }: ClientError): boolean =>
  reason._tag === "ProtocolError" && reason.error.code === -32601

/** Inspects one server, which a card has named if the person gave a domain. */
const inspectServer = (line: InspectLine, found?: Found): Effect.Effect<void, CommandFailed, Process> => {
  const warnings = new ServerWarnings()
  return onClient({ ...line, onStderr: warnings.read }, function*(client, { colors, print, warn }, server) {
    const isSelected = line.lint || parts.some((part) => line[part])
    const selected = parts.filter((part) => !isSelected || line[part] || (line.lint && part === "tools"))
    const lists = listsOf(client, line)
    const texts: Array<string> = []
    const json: Record<string, unknown> = found === undefined ? {} : { card: found.card }
    if (found !== undefined) texts.push(cardText(found))
    let code = 0
    if (selected.includes("info")) {
      const { capabilities, instructions, revision, server: info } = client
      const { supported, unknown } = yield* supportedRevisions(client, server, line)
      if (unknown.length > 0) warn(`The server did not answer in time whether it supports ${unknown.join(", ")}`)
      if (found !== undefined) {
        const live = { version: info?.version, supported: unknown.length > 0 ? [] : supported }
        for (const difference of differencesOf(found, live)) warn(difference)
      }
      texts.push(infoText(client, supported))
      Object.assign(json, {
        server: info,
        protocolVersion: revision,
        supportedVersions: supported,
        capabilities,
        instructions
      })
    }
    for (const part of selected) {
      const list = lists[part]
      if (list === undefined) continue
      if (!list.isDeclared) {
        if (!isSelected) continue
        warn(`The server has no ${list.name}`)
        json[list.member] = []
        continue
      }
      const result = yield* Effect.result(
        within(list.request, line, `The server did not list its ${list.name}`)
      )
      if (result._tag === "Failure") {
        const { failure } = result
        // One list that the server refuses does not hide the others. Many servers have resources but no templates.
        if (exitCode(failure) === 3) return yield* failure
        if (part === "templates" && isMethodNotFound(failure)) continue
        warn(sanitize(`The ${list.name} are not shown: ${failure.message}`))
        code = 4
        continue
      }
      const { items, text } = result.success
      if (part === "tools" && line.lint) {
        const problems = yield* Effect.promise(() => lintTools(items as ReadonlyArray<Tool>))
        json["lint"] = problems
        if (problems.length > 0) texts.push(yield* format("the warnings", () => lintTable(problems, colors?.out)))
        else warn("Every provider accepts the names and the schemas of the tools")
        if (!line.tools) continue
      }
      json[list.member] = items
      if (items.length > 0) texts.push(yield* format(list.name, () => text(colors?.out)))
      else if (isSelected) warn(`The server has no ${list.name}`)
    }
    if (warnings.list.length > 0) {
      json["warnings"] = warnings.list
      texts.push(warningsText(warnings.list))
    }
    if (line.json) yield* print(yield* format("the server", () => JSON.stringify(json, undefined, 2)))
    else if (texts.length > 0) yield* print(texts.join("\n\n"), true)
    return code
  })
}

/** Inspects the server of a domain, or lists its servers if there are several. */
const inspectDomain = (line: InspectLine, origin: URL): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { console: { colors, print, warn } } = yield* Process
    const { found, problems } = yield* discover(origin, line.timeout)
    for (const problem of problems) warn(problem)
    const [only] = found
    if (only?.endpoint !== undefined && found.length === 1) {
      return yield* inspectServer({ ...line, target: { _tag: "Url", url: only.endpoint } }, only)
    }
    if (line.json) return yield* print(JSON.stringify({ cards: found.map(({ card }) => card) }, undefined, 2))
    yield* print(cardTable(found, colors?.out), true)
    const usable = found.find(({ endpoint }) => endpoint !== undefined)?.endpoint
    if (usable !== undefined) warn(`Inspect one of them: skein inspect ${quoteLine(usable.href)}`)
  })

/** `skein inspect`. */
export const inspect = (line: InspectLine): Effect.Effect<void, CommandFailed, Process> =>
  line.target._tag === "Url" && line.target.isDomain === true
    ? inspectDomain(line, line.target.url)
    : inspectServer(line)
