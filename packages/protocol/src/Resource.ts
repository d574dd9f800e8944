/**
 * Resources: `resources/list`, `resources/templates/list`, `resources/read`, and their notifications. In the session era one
 * is watched with `resources/subscribe`; since 2026-07-28 with `subscriptions/listen`, in `Subscription`.
 */
import * as Schema from "effect/Schema"
import {
  Annotations,
  cacheFields,
  iconFields,
  metaFields,
  nameFields,
  notificationFields,
  pageFields,
  requestFields,
  resultFields,
  Uri
} from "./Common.ts"
import { AnyResourceContents, resourceFields } from "./Content.ts"
import { inputResponseFields } from "./InputRequired.ts"

/** Something that the server lets the client read. */
export class Resource extends Schema.Opaque<Resource>()(Schema.Struct(resourceFields)) {}

/** A family of resources, by an RFC 6570 URI template. */
export class ResourceTemplate extends Schema.Opaque<ResourceTemplate>()(Schema.Struct({
  ...nameFields,
  ...iconFields,
  uriTemplate: Uri,
  description: Schema.optionalKey(Schema.String),
  mimeType: Schema.optionalKey(Schema.String),
  annotations: Schema.optionalKey(Annotations),
  ...metaFields
})) {}

/** The answer to `resources/list`. */
export class ListResourcesResult extends Schema.Opaque<ListResourcesResult>()(Schema.Struct({
  ...pageFields,
  ...cacheFields,
  resources: Schema.Array(Resource)
})) {}

/** The answer to `resources/templates/list`. */
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

/** The answer to `resources/read`. */
export class ReadResourceResult extends Schema.Opaque<ReadResourceResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields,
  contents: Schema.Array(AnyResourceContents)
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
