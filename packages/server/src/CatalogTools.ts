/**
 * Resources and prompts as tools, for hosts that support tools only.
 *
 * @example
 * const server = McpServer.layer({ name: "notes", version: "1.0.0" }, Resource.layer(today, readToday), CatalogTools.layer())
 */
import * as Json from "@skein/protocol/Json"
import type { AnyResourceContents } from "@skein/protocol/Content"
import { Encoded, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Catalog } from "./Catalog.ts"
import type * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import * as Tool from "./Tool.ts"

/** The names of the tools. `false` leaves a tool out. */
export interface Options {
  /** `list_resources` by default. It returns resources, and resource templates on request, in pages. */
  readonly listResources?: string | false | undefined
  /** `read_resource` by default. */
  readonly readResource?: string | false | undefined
  /** `list_prompts` by default. It returns pages, too. */
  readonly listPrompts?: string | false | undefined
  /** `get_prompt` by default. */
  readonly getPrompt?: string | false | undefined
}

type Asked<A> = Effect.Effect<A, McpError.McpError, McpRequest | Catalog>

const cursor = Schema.optionalKey(Schema.String).annotate({ description: "The nextCursor of the page before" })
const readOnly = { annotations: { readOnlyHint: true, openWorldHint: false } }

/** Handles a request of another method for the caller of the present request, and returns its result. */
const ask = (method: string, own: JsonObject): Asked<JsonObject> =>
  Effect.gen(function*() {
    const { inner } = (yield* Catalog)[internals]
    const request = yield* McpRequest
    if (inner.dispatch === undefined) return yield* Effect.fail(McpError.methodNotFound(method))
    const meta = request.params?.["_meta"]
    const params = meta === undefined ? own : { ...own, _meta: meta }
    const answer = yield* inner.dispatch(request.with({ method, params }))
    return answer instanceof Encoded ? Json.parse(answer.text) as JsonObject : answer as JsonObject
  })

/** The JSON of some members of a result. */
const textOf = (asked: Asked<JsonObject>, members: ReadonlyArray<string>): Asked<string> =>
  Effect.map(asked, (result) =>
    Json.stringify(
      Object.fromEntries(members.flatMap((name) => result[name] === undefined ? [] : [[name, result[name]]]))
    )!)

/** A model receives the error as a result that it can act on. */
type ToolOptions<Input extends Tool.AnySchema> = Tool.Options<Input, never> & Tool.CheckedSchemas<Input, never>

/** A tool that makes a request of its own, unless its name is `false`. */
const toolOf = <const Input extends Schema.Struct.Fields & Tool.AnySchema>(
  name: string | false,
  description: string,
  input: Input,
  run: (input: Tool.InputOf<Input>) => Asked<Tool.Answer<never>>
): Layer.Layer<never, DefinitionError, Catalog> =>
  name === false
    ? Layer.empty
    : Tool.layer(
      Tool.make<string, Input, never>(name, { ...readOnly, description, input } as ToolOptions<Input>),
      (input) =>
        Effect.catch(run(input), ({ message }) => Effect.succeed(Tool.result({ isError: true, content: message })))
    )

const blockOf = (contents: AnyResourceContents): Content.ContentBlock => {
  const { mimeType = "" } = contents
  if ("text" in contents) return { type: "text", text: contents.text }
  if (mimeType.startsWith("image/")) return { type: "image", data: contents.blob, mimeType }
  return { type: "resource", resource: contents }
}

/**
 * Adds the tools `list_resources`, `read_resource`, `list_prompts` and `get_prompt`.
 *
 * - They return what `resources/list`, `resources/templates/list`, `resources/read`, `prompts/list` and `prompts/get` return
 *   to the same caller: the same pages, visibility, guards, middleware of operations and middleware of mounted parts.
 *   Middleware of the whole server (`Middleware.layer`) sees the call of the tool, and not a second request.
 * - Lists and prompts are JSON text. Text contents are text blocks, images are image blocks, and other contents are embedded
 *   resources.
 * - An error, such as that of a resource that does not exist, is a result with `isError`.
 * - In a mounted part the tools have its prefix, and offer the resources and prompts of the whole server.
 *
 * A page has at most `pageSize` entries of the server, and a result is bounded by `MaxResponseSize`. Fails with
 * `DefinitionError` `DuplicateName` if a name is taken.
 *
 * @example
 * const onlyResources = CatalogTools.layer({ listPrompts: false, getPrompt: false })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> => {
  const {
    getPrompt = "get_prompt",
    listPrompts = "list_prompts",
    listResources = "list_resources",
    readResource = "read_resource"
  } = options
  return Layer.mergeAll(
    toolOf(
      listResources,
      "Lists the resources that can be read, or the URI templates of further ones, in pages.",
      { kind: Schema.optionalKey(Schema.Literals(["resources", "templates"])), cursor },
      ({ kind, ...page }) =>
        textOf(
          ask(kind === "templates" ? "resources/templates/list" : "resources/list", page),
          ["resources", "resourceTemplates", "nextCursor"]
        )
    ),
    toolOf(readResource, "Reads a resource by its URI.", { uri: Schema.String }, ({ uri }) =>
      Effect.map(
        ask("resources/read", { uri }),
        ({ contents }) => (contents as ReadonlyArray<AnyResourceContents>).map(blockOf)
      )),
    toolOf(
      listPrompts,
      "Lists prompts and their arguments, in pages.",
      { cursor },
      (page) => textOf(ask("prompts/list", page), ["prompts", "nextCursor"])
    ),
    toolOf(
      getPrompt,
      "Returns the messages of a prompt.",
      { name: Schema.String, arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)) },
      (params) => textOf(ask("prompts/get", params), ["description", "messages"])
    )
  )
}
