/**
 * Transforms: definitions with other names, descriptions and arguments than their author gave them.
 *
 * A transform wraps definitions of any source: tools of this server, tools of `OpenApi.layer`, mounted servers. The list of
 * tools has the changed tools, and calls are changed back before they reach the handler.
 *
 * @example
 * const shop = Transform.tools(
 *   {
 *     except: { tags: ["internal"] },
 *     change: {
 *       createOrder: {
 *         name: "order",
 *         description: "Orders tea for the customer.",
 *         arguments: { tea_id: { name: "tea" }, shop: { value: "delft" }, cups: { default: 1 } }
 *       }
 *     }
 *   },
 *   OpenApi.layer(document)
 * )
 */
import type * as WireTool from "@skein/protocol/Tool"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { Catalog, ToolEntry } from "./Catalog.ts"
import { DefinitionError, NotFound } from "./DefinitionError.ts"
import { partLayer } from "./internal/composition/partLayer.ts"
import { linking } from "./internal/composition/pageTools.ts"
import { redirectingTo } from "./internal/dispatch/redirect.ts"
import { changeTool, type ToolChange } from "./internal/composition/toolChange.ts"
import type { Projection } from "./internal/catalog/mirror.ts"

export type { ArgumentChange, ToolChange } from "./internal/composition/toolChange.ts"

/** Selects tools. A tool is selected if its name or one of its tags is. */
export interface Selection {
  /** Names, and patterns that are tested against the names. */
  readonly names?: ReadonlyArray<string | RegExp> | undefined
  /** Tags (`Tool.Options.tags`). */
  readonly tags?: ReadonlyArray<string> | undefined
}

/** The changes of tools. Names are those that the definitions have, before any change. */
export interface Options {
  /** The tools that the server has. All by default. */
  readonly only?: Selection | undefined
  /** The tools that the server does not have. None by default. */
  readonly except?: Selection | undefined
  /** Makes the names of the tools that `change` does not name. */
  readonly rename?: ((name: string) => string) | undefined
  /** The changes of single tools, by their names. */
  readonly change?: { readonly [name: string]: ToolChange } | undefined
  /**
   * Returns the change of a tool that `change` does not have, for the tools of a source that are not known in advance. Its
   * `name` is not used: see `rename`.
   */
  readonly each?:
    | ((tool: WireTool.Tool, tags: ReadonlyArray<string>) => Omit<ToolChange, "name"> | undefined)
    | undefined
  /**
   * `ignore` accepts a name in `change` that no tool has once all definitions are built, for sources that add their tools
   * later. By default the server fails with `NotFound`.
   */
  readonly missing?: "fail" | "ignore" | undefined
}

const selects = ({ names = [], tags = [] }: Selection, name: string, own: ReadonlyArray<string>): boolean =>
  names.some((each) => typeof each === "string" ? each === name : name.search(each) >= 0) ||
  tags.some((tag) => own.includes(tag))

/**
 * Changes the tools of definitions. Resources, prompts and middleware among the definitions stay as they are.
 *
 * - The tools that are left out do not exist in the server: their names are free.
 * - A renamed argument keeps its schema, `x-mcp-header` included. A hidden argument is in neither `properties` nor
 *   `required`; a caller that gives it all the same, or that uses the old name of an argument, is refused as for invalid
 *   arguments.
 * - The tool itself validates the arguments after the change, so its messages have its own names.
 * - The same definitions may be in several transforms.
 * - Transforms may be nested: the outer one receives the names that the inner one makes.
 *
 * Fails as the definitions do, and with `DefinitionError`: `InvalidValue` for an argument that does not exist or that cannot
 * be changed so, `NotFound` for a tool that does not exist, `DuplicateName` for a name that is taken, `InvalidSchema` if
 * `x-mcp-header` annotations collide.
 *
 * @example
 * const readOnly = Transform.tools({ only: { names: [/^(get|list)/] }, rename: (name) => `docs_${name}` }, ...tools)
 */
export const tools = <const L extends ReadonlyArray<Layer.Layer<never, unknown, unknown>>>(
  options: Options,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]> | DefinitionError, Layer.Services<L[number]> | Catalog> =>
  partLayer(definitions, (outside, place) => {
    const changes = new Map(Object.entries(options.change ?? {}))
    const missing = new Set(changes.keys())
    const projection: Projection<ToolEntry> = {
      name: (own) => changes.get(own)?.name ?? (changes.has(own) ? own : options.rename?.(own) ?? own),
      entry: (entry, own, name) => {
        const { tags = [] } = entry
        missing.delete(own)
        if (options.only !== undefined && !selects(options.only, own, tags)) return Result.succeed(undefined)
        if (options.except !== undefined && selects(options.except, own, tags)) return Result.succeed(undefined)
        const renamed = { ...entry, ...redirectingTo(entry, projection.name) }
        const changed = changeTool(renamed, name, changes.get(own) ?? options.each?.(entry.definition, tags) ?? {})
        return Result.map(
          changed,
          (tool) => linking(tool, { tools: () => inside, nameOf: projection.name, uriOf: (uri) => uri })
        )
      }
    }
    const inside = outside.tools.part(projection, place)
    return Effect.succeed({
      inside: { ...outside, tools: inside },
      complete: Effect.suspend(() => {
        const [name] = missing
        if (name === undefined || options.missing === "ignore") return Effect.void
        const reason = new NotFound({ message: `No tool has the name ${quote(name)}, so it cannot be changed` })
        return Effect.fail(new DefinitionError({ reason, kind: "tool", definition: name }))
      })
    })
    // The types of the definitions are lost while they are built in a loop: hence the cast.
  }) as never
