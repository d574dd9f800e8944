/**
 * The methods of a server, except those of extensions: of connections (`initialize`, `server/discover`, `ping`,
 * `logging/setLevel`), of the catalog (`tools/*`, `resources/*`, `prompts/*`), `completion/complete`, and of subscriptions.
 */
import type { CompleteRequestParams, CompleteResult } from "@skein/protocol/Completion"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { SubscriptionFilter } from "@skein/protocol/Subscription"
import { clip } from "@skein/protocol/Text"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import type { Catalog, Completers } from "../../Catalog.ts"
import type { Guard } from "../../Registry.ts"
import type { ServerSession } from "../base/session.ts"
import { internals, type Subscription } from "../catalog/catalogState.ts"
import { isVisible } from "../catalog/entryStore.ts"
import { provideRequest } from "../catalog/hookList.ts"
import { findReadable, findReader, isAdmitted } from "../handlers/readResource.ts"
import * as capabilities from "../subscriptions/capabilities.ts"
import type { ListenSubscription } from "../subscriptions/listenSubscription.ts"
import { callTool } from "./callTool.ts"
import * as extensions from "./extensions.ts"
import { initialize } from "./initialize.ts"
import { installListing } from "./listing.ts"
import type { MethodTable } from "./methodTable.ts"

/** Adds the methods to the table. */
export const install = (methods: MethodTable): void => {
  installLifecycle(methods)
  installTools(methods)
  installResources(methods)
  installPrompts(methods)
  installCompletion(methods)
  installSubscriptions(methods)
}

/**
 * Runs a method in the session of its caller. For a peer of a single request the method does not exist: it can receive
 * no notification, and its session is lost with the answer.
 */
const inSession = <A>(
  { subscriptions }: MethodTable,
  { caller, method }: RequestContext,
  run: (session: ServerSession) => Effect.Effect<A, McpError.McpError>
): Effect.Effect<A, McpError.McpError> =>
  Effect.suspend(() => {
    const session = subscriptions.lastingSession(caller)
    return session === undefined ? Effect.fail(McpError.methodNotFound(method)) : run(session)
  })

// ---- connections

const installLifecycle = (methods: MethodTable): void => {
  const { catalog, description, subscriptions } = methods
  const instructions = description.instructions === undefined ? undefined : { instructions: description.instructions }

  // Session-based revisions only. `MethodTable.encodeResult` encodes the result.
  methods.add(Method.Ping, () => Effect.succeed({}))
  methods.set(Method.Initialize, initialize(description, catalog, subscriptions))
  methods.add(Method.Discover, (_params, { caller }) =>
    Effect.sync(() => ({
      supportedVersions: description.revisions,
      capabilities: extensions.declared(catalog, caller, capabilities.of(catalog)),
      ...instructions
    })))
  // "The server should send all logs at this level and higher". The level applies to requests in progress too.
  methods.add(
    Method.SetLevel,
    ({ level }, request) =>
      inSession(methods, request, (session) =>
        Effect.as(
          subscriptions.change(session, { logLevel: level }, () => {
            session.logLevel = level
          }),
          {}
        ))
  )
}

// ---- the catalog

const installTools = (methods: MethodTable): void => {
  installListing(methods, Method.ListTools, "tools", methods.catalog.tools)
  methods.handlers.set(Method.CallTool.name, callTool(methods))
}

const installResources = (methods: MethodTable): void => {
  const { catalog } = methods
  installListing(methods, Method.ListResources, "resources", catalog.resources)
  installListing(methods, Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  methods.add(Method.ReadResource, ({ uri }, request) => {
    const read = findReader(catalog, uri, request.caller)
    if (read === undefined) return Effect.fail(McpError.resourceNotFound(uri))
    if (McpError.isMcpError(read)) return Effect.fail(read)
    const { reads } = catalog[internals].operations
    const entry = reads.all.length === 0 ? undefined : findReadable(catalog, uri, request.caller)
    return entry === undefined
      ? read(request)
      : reads.run({ entry, uri, caller: request.caller, request }, ({ request }) => read(request))
  })
}

const installPrompts = (methods: MethodTable): void => {
  const { [internals]: { operations }, prompts } = methods.catalog
  installListing(methods, Method.ListPrompts, "prompts", prompts)
  methods.add(Method.GetPrompt, (params, request) => {
    const prompt = prompts.seen(params.name, request.caller)
    if (prompt === undefined) return Effect.fail(McpError.invalidParams(`Unknown prompt: ${clip(params.name)}`))
    const refused = prompt.guard?.(request.caller)
    if (refused !== undefined) return Effect.fail(refused)
    const args: JsonObject = params.arguments ?? {}
    return operations.prompts.all.length === 0
      ? prompt.get(args, request)
      : operations.prompts.run(
        { entry: prompt, arguments: args, caller: request.caller, request },
        (changed) => provideRequest(request, changed.request, prompt.get(changed.arguments, changed.request))
      )
  })
}

// ---- completion

/** "Maximum 100 items per response". */
const maxValues = 100

/** The prompt or template of a reference: its completers, and the names of its arguments or variables. */
interface Target {
  readonly complete?: Completers | undefined
  readonly guard?: Guard | undefined
  readonly names: () => ReadonlyArray<string>
}

/** Finds the target of a reference. An entry that the caller may not see does not exist. */
const findTarget = (
  { prompts, resources, templates }: Catalog["Service"],
  ref: CompleteRequestParams["ref"],
  caller: Caller
): Target | undefined => {
  if (ref.type === "ref/prompt") {
    const prompt = prompts.seen(ref.name, caller)
    if (prompt === undefined) return undefined
    const { complete, guard } = prompt
    return { complete, guard, names: () => prompt.definition.arguments?.map(({ name }) => name) ?? [] }
  }
  // "`uri` is a URI or URI template" (2026-07-28). For a URI the first matching template is the target.
  const template = templates.seen(ref.uri, caller)
    ?? (resources.seen(ref.uri, caller) === undefined
      ? templates.sorted.find(([, entry]) => isVisible(entry, caller) && entry.match(ref.uri) !== undefined)
        ?.[1]
      : undefined)
  if (template === undefined) return resources.seen(ref.uri, caller) === undefined ? undefined : { names: () => [] }
  const { complete, guard } = template
  return { complete, guard, names: () => template.names }
}

const completionOf = (found: ReadonlyArray<string> | CompleteResult["completion"]): CompleteResult => {
  if ("values" in found && !Array.isArray(found)) {
    const { values } = found as CompleteResult["completion"]
    return {
      completion: values.length > maxValues
        ? { ...found, values: values.slice(0, maxValues), hasMore: true }
        : found as CompleteResult["completion"]
    }
  }
  const all = found as ReadonlyArray<string>
  return { completion: { values: all.slice(0, maxValues), total: all.length, hasMore: all.length > maxValues } }
}

const installCompletion = (methods: MethodTable): void => {
  methods.add(Method.Complete, ({ argument, context, ref }, { caller }) => {
    const target = findTarget(methods.catalog, ref, caller)
    if (target === undefined) {
      const what = ref.type === "ref/prompt" ? `prompt: ${clip(ref.name)}` : `resource template: ${clip(ref.uri)}`
      return Effect.fail(McpError.invalidParams(`Unknown ${what}`))
    }
    const refused = target.guard?.(caller)
    if (refused !== undefined) return Effect.fail(refused)
    const { name, value } = argument
    const complete = target.complete?.get(name)
    if (complete !== undefined) return Effect.map(complete(value, context?.arguments ?? {}), completionOf)
    return target.names().includes(name)
      ? Effect.succeed(completionOf([]))
      : Effect.fail(McpError.invalidParams(`Unknown argument: ${clip(name)}${namesOf(target.names())}`))
  })
}

/** The names of the arguments that exist, for a message. */
const namesOf = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "; it has none" : `; it has ${clip(names.join(", "), 512)}`

// ---- subscriptions

const installSubscriptions = (methods: MethodTable): void => {
  const { catalog, subscriptions } = methods

  // A URI without a reader, or one that the caller may not see, is answered as `resources/read` answers it.
  methods.add(Method.Subscribe, ({ uri }, request) =>
    inSession(methods, request, (session) => {
      const problem = subscriptions.readProblem(request.caller, uri)
      if (problem !== undefined) return Effect.fail(problem)
      const changed = Effect.suspend(() => subscriptions.change(session, { subscribe: uri }, constVoid))
      const subscribed = Effect.as(Effect.andThen(subscriptions.subscribe(session, uri), changed), {})
      return Effect.flatMap(
        isAdmitted(catalog, uri, request.caller),
        (admitted) => admitted ? subscribed : Effect.fail(McpError.resourceNotFound(uri))
      )
    }))

  // A client may unsubscribe from a resource that was removed meanwhile.
  methods.add(
    Method.Unsubscribe,
    ({ uri }, request) =>
      inSession(methods, request, (session) =>
        Effect.as(
          subscriptions.change(session, { unsubscribe: uri }, () => subscriptions.unsubscribe(session, uri)),
          {}
        ))
  )

  /** The resources of a filter that the caller may subscribe to, each once, up to the bound. */
  const granted = (
    requested: ReadonlyArray<string>,
    { caller }: RequestContext
  ): Effect.Effect<ReadonlySet<string>> => {
    const uris = new Set<string>()
    for (const uri of requested) {
      if (uris.size >= subscriptions.bounds.maxResources) break
      if (subscriptions.canRead(caller, uri)) uris.add(uri)
    }
    return Effect.map(Effect.filter(uris, (uri) => isAdmitted(catalog, uri, caller)), (admitted) => new Set(admitted))
  }

  /** The part of a filter that the server agrees to. */
  const agree = (
    filter: SubscriptionFilter,
    further: ReadonlyArray<Subscription>,
    request: RequestContext
  ) => {
    const lists = capabilities.lists(catalog)
    const kinds = lists.filter((kind) => filter[`${kind}ListChanged`] === true)
    const requested = lists.includes("resources") ? filter.resourceSubscriptions : undefined
    // "The subset the server agreed to honor. Notification types the server does not support are omitted."
    const acknowledged = (uris: ReadonlySet<string>) => ({
      ...Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true])),
      ...(requested === undefined ? undefined : { resourceSubscriptions: [...uris] }),
      ...Object.assign({}, ...further.map(({ agreed }) => agreed))
    })
    return Effect.map(granted(requested ?? [], request), (uris) => ({ kinds, uris, acknowledged }))
  }

  methods.add(
    Method.SubscriptionsListen,
    ({ notifications }: { readonly notifications: SubscriptionFilter }, request) => {
      // The effects of an open request stay in memory, and so do the variables of their functions: the filter may be
      // large.
      let filter: SubscriptionFilter | undefined = notifications
      return Effect.flatMap(Effect.suspend(() => extensions.listening(catalog, filter!, request)), (further) => {
        const agreed = agree(filter!, further, request)
        filter = undefined
        return Effect.flatMap(agreed, ({ acknowledged, kinds, uris }) =>
          subscriptions.watching(
            uris,
            (confirmed) =>
              Effect.map(subscriptions.listen(request, kinds, confirmed, acknowledged(confirmed), further), metaOf)
          ))
      })
    }
  )
}

const metaOf = ({ meta }: ListenSubscription) => ({ _meta: meta })
