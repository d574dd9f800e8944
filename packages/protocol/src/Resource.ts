/**
 * Resources: `resources/list`, `resources/templates/list`, `resources/read`, and their notifications. In a
 * session-based revision a client watches a resource with `resources/subscribe`; since 2026-07-28 with
 * `subscriptions/listen` (see `Subscription`).
 */
import * as Schema from "effect/Schema"
import { essential } from "./Annotate.ts"
import { iconFields, nameFields } from "./BaseMetadata.ts"
import { cacheFields } from "./Caching.ts"
import { Annotations, AnyResourceContents, resourceFields } from "./Content.ts"
import { inputResponseFields } from "./InputRequired.ts"
import { metaFields, notificationFields, requestFields, resultFields } from "./Message.ts"
import { pageFields } from "./Pagination.ts"
import { Uri } from "./Primitive.ts"

/** A resource, as a server lists it. */
export class Resource extends Schema.Opaque<Resource>()(Schema.Struct(resourceFields)) {}

/** A set of resources, described by a URI template (RFC 6570). */
export class ResourceTemplate extends Schema.Opaque<ResourceTemplate>()(Schema.Struct({
  ...nameFields,
  ...iconFields,
  uriTemplate: Uri,
  description: Schema.optionalKey(Schema.String),
  mimeType: Schema.optionalKey(Schema.String),
  annotations: Schema.optionalKey(Annotations),
  ...metaFields
})) {}

/** The result of `resources/list`. */
export class ListResourcesResult extends Schema.Opaque<ListResourcesResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  resources: Schema.Array(Resource)
})) {}

/** The result of `resources/templates/list`. */
export class ListResourceTemplatesResult extends Schema.Opaque<ListResourceTemplatesResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  resourceTemplates: Schema.Array(ResourceTemplate)
})) {}

/** Params that name one resource. */
export class ResourceRequestParams extends Schema.Opaque<ResourceRequestParams>()(Schema.Struct({
  ...requestFields,
  uri: Uri
})) {}

/** The params of `resources/read`. */
export class ReadResourceRequestParams extends Schema.Opaque<ReadResourceRequestParams>()(Schema.Struct({
  ...requestFields,
  ...inputResponseFields,
  uri: Uri
})) {}

/** The result of `resources/read`. */
export class ReadResourceResult extends Schema.Opaque<ReadResourceResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields,
  contents: essential(Schema.Array(AnyResourceContents))
})) {}

/** The params of `resources/subscribe`, until 2026-07-28. */
export const SubscribeRequestParams = ResourceRequestParams
export type SubscribeRequestParams = ResourceRequestParams

/** The params of `resources/unsubscribe`, until 2026-07-28. */
export const UnsubscribeRequestParams = ResourceRequestParams
export type UnsubscribeRequestParams = ResourceRequestParams

/** The params of `notifications/resources/updated`. */
export class ResourceUpdatedNotificationParams
  extends Schema.Opaque<ResourceUpdatedNotificationParams>()(Schema.Struct({ ...notificationFields, uri: Uri }))
{}
