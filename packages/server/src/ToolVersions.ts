/**
 * Several versions of a tool under one name.
 *
 * Clients see the newest version in `tools/list`, with the names of all versions in its `_meta`:
 *
 * - `io.github.skein-mcp/version`: the version (`Tool.Options.version`);
 * - `io.github.skein-mcp/versions`: all versions, the newest first.
 *
 * A call runs the newest version. A client that was written for an older one names it in the `_meta` of `tools/call`, under
 * `io.github.skein-mcp/version`. A version that does not exist, or that the caller may not see, is refused with `-32602`.
 * The specification has no field for versions, and clients that do not read these keys need none.
 *
 * @example
 * const bills = ToolVersions.layer(
 *   Tool.layer(Tool.make("bill", { version: "1.0", input: { cups: Schema.Int } }), billOf),
 *   Tool.layer(Tool.make("bill", { version: "2.0", input: { tea: Schema.String, cups: Schema.Int } }), billOfTea)
 * )
 */
import type { Meta } from "@skein/protocol/Message"
import * as McpError from "@skein/protocol/McpError"
import { clip, quote } from "@skein/protocol/Text"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Catalog, type ToolEntry } from "./Catalog.ts"
import { DefinitionError, InvalidValue } from "./DefinitionError.ts"
import { compareVersions, requestedVersion, versionKey, versionsKey } from "./internal/handlers/toolVersion.ts"
import { Registry } from "./Registry.ts"
import { isVisible } from "./internal/catalog/entryStore.ts"

const versionOf = ({ definition: { _meta } }: ToolEntry): string => String((_meta as Meta | undefined)?.[versionKey])

/**
 * Compares two versions: parts between dots as numbers, then the rest. A version with a suffix after a hyphen is older
 * than the same one without (`2.0-beta` before `2.0`), except in dates, which all have one (`2026-01-31`).
 *
 * @example
 * const newest = ["1.10", "1.9"].sort(ToolVersions.compare).at(-1) // 1.10
 */
export const compare: (a: string, b: string) => number = compareVersions

/**
 * Registers versions of a tool. Each is a layer of `Tool.layer` or `Tool.async` with the option `version`, and all have the
 * same name.
 *
 * Middleware, annotations, tags, visibility and the headers of arguments (`x-mcp-header`) are those of the newest version.
 * `visible` and guards of an older version apply to calls of it in addition. `Retry` and `ResultCache` pass on calls that
 * name a version. A version cannot run as a task.
 *
 * Fails with `DefinitionError` `InvalidValue` for a missing or repeated version, another name, and a tool that may become
 * a task; and otherwise as `Tool.layer` does.
 *
 * @example
 * const searches = ToolVersions.layer(Tool.layer(searchV1, find), Tool.layer(searchV2, findBetter))
 */
export const layer = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  ...versions: L
): Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const catalog = yield* Catalog
    const members: Array<ToolEntry> = []
    for (const version of versions) {
      // The view of the catalog that the layer registers its tool in.
      const tools = new Registry<ToolEntry>("tool")
      yield* Layer.build(Layer.provide(Layer.fresh(version), Layer.succeed(Catalog, { ...catalog, tools })))
      members.push(...tools.sorted.map(([, entry]) => entry))
    }
    const problem = problemOf(members)
    if (problem !== undefined) {
      const definition = members[0]?.definition.name ?? ""
      return yield* Effect.fail(
        new DefinitionError({ reason: new InvalidValue({ message: problem }), kind: "tool", definition })
      )
    }
    const sorted = members.toSorted((a, b) => compare(versionOf(b), versionOf(a)))
    yield* catalog.tools.add(sorted[0]!.definition.name, together(sorted))
  })) as Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog>

const problemOf = (members: ReadonlyArray<ToolEntry>): string | undefined => {
  const name = members[0]?.definition.name
  if (name === undefined) return "ToolVersions.layer needs at least one tool"
  const seen = new Set<string>()
  for (const member of members) {
    const { _meta, execution, name: own } = member.definition
    const version = versionOf(member)
    if (own !== name) return `The versions of the tool ${quote(name)} must have its name, not ${quote(own)}`
    if ((_meta as Meta | undefined)?.[versionKey] === undefined) return `The tool ${quote(name)} has no version`
    if (execution !== undefined) return `The version ${version} of the tool ${quote(name)} cannot run as a task`
    if (seen.has(version)) return `The tool ${quote(name)} has two versions ${version}`
    seen.add(version)
  }
  return undefined
}

/** The entry of all versions. It is the newest one, whose calls may run another. */
const together = (members: ReadonlyArray<ToolEntry>): ToolEntry => {
  const newest = members[0]!
  const { definition } = newest
  const names = members.map(versionOf)
  const byVersion = new Map(members.map((member) => [versionOf(member), member]))
  const refuse = (version: unknown): McpError.McpError =>
    McpError.invalidParams(
      `Unknown version ${clip(String(version))} of the tool ${definition.name}: it has ${names.join(", ")}`
    )
  return {
    ...newest,
    definition: { ...definition, _meta: { ...definition._meta, [versionsKey]: names } },
    call: (args, request: RequestContext) => {
      const version = requestedVersion(request)
      if (version === undefined) return newest.call(args, request)
      const member = typeof version === "string" ? byVersion.get(version) : undefined
      if (member === undefined || !isVisible(member, request.caller)) return Effect.fail(refuse(version))
      const refused = member.guard?.(request.caller)
      return refused === undefined ? member.call(args, request) : Effect.fail(refused)
    }
  }
}
