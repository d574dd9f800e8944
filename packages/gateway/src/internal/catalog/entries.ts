/**
 * Makes entries of a server's catalog from the definitions of a remote server. Definitions and results stay as they
 * are.
 */
import type { CallToolRequestParams } from "@skein/protocol/CallTool"
import type { CompleteRequestParams } from "@skein/protocol/Completion"
import * as Method from "@skein/protocol/Method"
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import * as UriTemplate from "@skein/protocol/UriTemplate"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import { McpRequest } from "@skein/runtime/RequestContext"
import type {
  Completer,
  Completers,
  PromptEntry,
  Reader,
  ResourceEntry,
  TemplateEntry,
  ToolEntry,
  Watch
} from "@skein/server/Catalog"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Forward } from "../calls/forward.ts"
import { toToolResult } from "../connection/remoteError.ts"

/** The shared parts of a proxy that its entries use. */
export interface EntryContext {
  readonly forward: Forward
  /** Watches a resource at the remote server. */
  readonly watch: Watch
  /** Whether results depend on the caller, because callers have connections of their own. */
  readonly isPrivate: boolean
}

/** The entry of a tool. Its calls reach the remote server under its name there, whatever name the server gives it. */
export const toolEntry = (tool: Tool, { forward }: EntryContext): ToolEntry => {
  const { name } = tool
  // Callers cannot run it as a task here: the proxy awaits the result.
  const { execution: _, ...definition } = tool
  const headers = XMcpHeader.fromSchema(tool.inputSchema)
  return {
    definition,
    headers: Result.isSuccess(headers) && headers.success.length > 0 ? headers.success : undefined,
    call: (args, request) => {
      const isEmpty = Object.keys(args).length === 0 && request.params?.["arguments"] === undefined
      const params: CallToolRequestParams = isEmpty ? { name } : { name, arguments: args }
      return Effect.catch(forward(Method.CallTool, params, request), toToolResult)
    }
  }
}

const completersOf = (
  names: ReadonlyArray<string>,
  ref: CompleteRequestParams["ref"],
  { forward }: EntryContext
): Completers =>
  new Map(names.map((name): readonly [string, Completer] => [name, (value, others) => {
    const context = Object.keys(others).length === 0 ? undefined : { context: { arguments: others } }
    const params: CompleteRequestParams = { ref, argument: { name, value }, ...context }
    return Effect.flatMap(McpRequest, (request) =>
      Effect.map(forward(Method.Complete, params, request), ({ completion }) => completion))
  }]))

/** The entry of a prompt. `completes`: whether the remote server completes arguments. */
export const promptEntry = (prompt: Prompt, completes: boolean, context: EntryContext): PromptEntry => {
  const { arguments: args = [], name } = prompt
  return {
    definition: prompt,
    get: (args, request) => {
      const given = args as Readonly<Record<string, string>>
      const isEmpty = Object.keys(args).length === 0 && request.params?.["arguments"] === undefined
      const params = isEmpty ? { name } : { name, arguments: given }
      return context.forward(Method.GetPrompt, params, request)
    },
    complete: completes && args.length > 0
      ? completersOf(args.map(({ name }) => name), { type: "ref/prompt", name }, context)
      : undefined
  }
}

const readerOf = (uri: string, context: EntryContext): Reader => (request) => {
  const result = context.forward(Method.ReadResource, { uri }, request)
  return context.isPrivate ? Effect.map(result, (result) => ({ ...result, cacheScope: "private" as const })) : result
}

/** The entry of a resource. */
export const resourceEntry = (resource: Resource, context: EntryContext): ResourceEntry => ({
  definition: resource,
  read: readerOf(resource.uri, context),
  watch: () => context.watch(resource.uri)
})

/** The entry of a template, or why the template cannot be used. */
export const templateEntry = (
  template: ResourceTemplate,
  completes: boolean,
  context: EntryContext
): Result.Result<TemplateEntry, string> =>
  Result.map(UriTemplate.make(template.uriTemplate), (compiled): TemplateEntry => ({
    definition: template,
    names: compiled.names,
    match: (uri) => UriTemplate.match(compiled, uri) === undefined ? undefined : readerOf(uri, context),
    watch: context.watch,
    complete: completes && compiled.names.length > 0
      ? completersOf(compiled.names, { type: "ref/resource", uri: template.uriTemplate }, context)
      : undefined
  }))

/** The entry for the resources that no list shows, such as those of links in results of tools. */
export const unlistedEntry = (
  text: string,
  includes: (uri: string) => boolean,
  context: EntryContext
): TemplateEntry => ({
  definition: { uriTemplate: text, name: "unlisted resources of a remote server" },
  names: [],
  unlisted: true,
  match: (uri) => URL.canParse(uri) && includes(uri) ? readerOf(uri, context) : undefined,
  watch: context.watch
})
