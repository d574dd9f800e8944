/**
 * Mounts definitions, or whole servers, as a part of a server.
 */
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Catalog } from "../../Catalog.ts"
import type { DefinitionError } from "../../DefinitionError.ts"
import {
  type ChangeListener,
  ExtensionList,
  internals,
  MiddlewareStack,
  OperationHooks,
  withoutMembers
} from "../catalog/catalogState.ts"
import type { Place } from "../catalog/placement.ts"
import { withServerServices } from "../base/logs.ts"
import type { Naming } from "./naming.ts"
import { Part, type ProvidePart } from "./part.ts"
import { partLayer } from "./partLayer.ts"

type CatalogService = Catalog["Service"]

/** Passes the changes of a part on to the server around it. */
const outwardListener = (part: () => Part, outside: CatalogService): ChangeListener => ({
  // The registries of the server around the part have changed, too.
  listChanged: () => {},
  resourceUpdated: (uri, parent) => {
    const { listener } = outside[internals].changes
    if (listener === undefined) return Effect.void
    const { outsideUri } = part()
    return listener.resourceUpdated(outsideUri(uri), parent === undefined ? undefined : outsideUri(parent))
  },
  notify: (...notification) => outside[internals].changes.listener?.notify(...notification) ?? false,
  session: (caller) => outside[internals].changes.listener?.session(caller),
  sharedSession: (caller) => outside[internals].changes.listener?.sharedSession(caller)
})

/** Makes the function that changes the services of a part's effects. */
const providing =
  (change: (context: Context.Context<McpRequest>) => Context.Context<McpRequest>): ProvidePart => (effect) =>
    Effect.updateContext(effect, change)

/** Makes the catalog of the definitions of a part. */
const makeCatalog = (outside: CatalogService, naming: Naming, place: Place): readonly [CatalogService, Part] => {
  const { base, extensions, inner, operations, scope } = outside[internals]
  const state = {
    middleware: new MiddlewareStack(),
    extensions: new ExtensionList(extensions),
    operations: new OperationHooks(operations.lists),
    inner,
    base,
    scope,
    declared: [],
    changes: { listener: outwardListener(() => part, outside) }
  }
  // The registries are made with the part, which refers to the catalog that they are in.
  const inside = { [internals]: state } as unknown as CatalogService
  const part = new Part(inside, outside, naming, providing((context) => Context.add(context, Catalog, inside)))
  Object.assign(inside, {
    tools: outside.tools.part(part.tools, place),
    resources: outside.resources.part(part.resources, place),
    templates: outside.templates.part(part.templates, place),
    prompts: outside.prompts.part(part.prompts, place)
  })
  state.base = Context.add(base, Catalog, inside)
  return [inside, part]
}

/** Makes another server a part of this one until the scope closes. */
const mountServer = (
  inside: CatalogService,
  outside: CatalogService,
  naming: Naming,
  place: Place
): Effect.Effect<void, DefinitionError, Scope.Scope> => {
  const { base, changes, extensions, middleware } = inside[internals]
  const part = new Part(inside, outside, naming, providing((context) => withServerServices(context, base)))
  const outward = outwardListener(() => part, outside)
  const own = changes.listener
  const both: ChangeListener = {
    listChanged: (kind) => own?.listChanged(kind),
    resourceUpdated: (uri, parent) =>
      Effect.andThen(own?.resourceUpdated(uri, parent) ?? Effect.void, outward.resourceUpdated(uri, parent)),
    // A notification to a caller, and its session, belong to one of the two servers.
    notify: (...notification) => own?.notify(...notification) === true || outward.notify(...notification),
    session: (caller) => own?.session(caller) ?? outward.session(caller),
    sharedSession: (caller) => own?.sharedSession(caller) ?? outward.sharedSession(caller)
  }
  return Effect.gen(function*() {
    yield* outside.tools.mirror(inside.tools, part.tools, place)
    yield* outside.resources.mirror(inside.resources, part.resources, place)
    yield* outside.templates.mirror(inside.templates, part.templates, place)
    yield* outside.prompts.mirror(inside.prompts, part.prompts, place)
    // The server has run its `ready` already.
    for (const extension of extensions.all) {
      yield* outside[internals].extensions.add(withoutMembers(extension, "call", "ready"))
    }
    yield* outside[internals].middleware.addPart({ ...part.middleware, stack: middleware })
    yield* Effect.acquireRelease(
      Effect.sync(() => void (changes.listener = both)),
      () =>
        Effect.sync(() => {
          if (changes.listener === both) changes.listener = own
        })
    )
  })
}

/** Makes the layer that mounts definitions. */
export const mount = (
  naming: Naming,
  definitions: ReadonlyArray<Layer.Layer<never, unknown, unknown>>
): Layer.Layer<never, unknown, Catalog> =>
  partLayer(definitions, (outside, place) => {
    const [inside, part] = makeCatalog(outside, naming, place)
    return Effect.as(outside[internals].middleware.addPart(part.middleware), {
      inside,
      built: (context, next) => {
        // A server provides its own catalog.
        const server = Context.getOrUndefined(context, Catalog)
        return server === undefined || server === inside ? Effect.void : mountServer(server, outside, naming, next())
      }
    })
  })
