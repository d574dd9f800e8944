/**
 * The parts of the protocol's messages that programs read and write, as plain types. `test/messages.test.ts` compares
 * each with the schema of `@skein/protocol` that has its name.
 */

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: unknown
}

/** Metadata of a message or of a part of it: keys with a prefix, such as `com.example/trace`, and any JSON. */
export type Meta = JsonObject

/** A revision of the Model Context Protocol. */
export type Revision = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28"

/** The sender of a message, or the audience of content. */
export type Role = "user" | "assistant"

/** An icon of a server, a tool, a resource or a prompt. */
export interface Icon {
  /** The URL of the image: `https:` or `data:`. */
  readonly src: string
  readonly mimeType?: string
  /** The sizes in which it can be shown, such as `48x48`, or `any`. */
  readonly sizes?: ReadonlyArray<string>
  /** The background that the icon is made for. */
  readonly theme?: "light" | "dark"
}

/** The name and version of a server or a client. */
export interface Implementation {
  readonly name: string
  /** A name for people. */
  readonly title?: string
  readonly version: string
  readonly description?: string
  readonly websiteUrl?: string
  readonly icons?: ReadonlyArray<Icon>
}

/** Hints for the client about the audience and the importance of an item. */
export interface Annotations {
  readonly audience?: ReadonlyArray<Role>
  /** From 0 (least important) to 1 (effectively required). */
  readonly priority?: number
  /** An ISO 8601 date and time. */
  readonly lastModified?: string
}

/** Members that each content block may have. */
interface Block {
  readonly annotations?: Annotations
  readonly _meta?: Meta
}

/** Text. */
export interface TextContent extends Block {
  readonly type: "text"
  readonly text: string
}

/** An image, in base64. */
export interface ImageContent extends Block {
  readonly type: "image"
  readonly data: string
  readonly mimeType: string
}

/** Audio, in base64. */
export interface AudioContent extends Block {
  readonly type: "audio"
  readonly data: string
  readonly mimeType: string
}

/** Text of a resource. */
export interface TextResourceContents {
  readonly uri: string
  readonly mimeType?: string
  readonly text: string
  readonly _meta?: Meta
}

/** Bytes of a resource, in base64. */
export interface BlobResourceContents {
  readonly uri: string
  readonly mimeType?: string
  readonly blob: string
  readonly _meta?: Meta
}

/** The contents of a resource: text or bytes. */
export type ResourceContents = TextResourceContents | BlobResourceContents

/** A resource whose contents are in the message. */
export interface EmbeddedResource extends Block {
  readonly type: "resource"
  readonly resource: ResourceContents
}

/** A resource that a server lists. */
export interface Resource extends Block {
  readonly uri: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** The size of the contents in bytes, before an encoding in base64. */
  readonly size?: number
  readonly icons?: ReadonlyArray<Icon>
}

/** A link to a resource, which the client may read. */
export interface ResourceLink extends Resource {
  readonly type: "resource_link"
}

/** A part of the result of a tool, or the content of a message of a prompt. */
export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

/** A template of resources that a server lists (RFC 6570). */
export interface ResourceTemplate extends Block {
  readonly uriTemplate: string
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  readonly icons?: ReadonlyArray<Icon>
}

/** Hints about the effects of a tool. A client must not trust those of a server that it does not trust. */
export interface ToolAnnotations {
  readonly title?: string
  /** The tool changes nothing. */
  readonly readOnlyHint?: boolean
  /** The tool may delete or overwrite data. */
  readonly destructiveHint?: boolean
  /** A second call with the same arguments has no further effect. */
  readonly idempotentHint?: boolean
  /** The tool reaches systems outside of the server's own, such as the web. */
  readonly openWorldHint?: boolean
}

/** A tool that a server lists. */
export interface Tool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: JsonObject & { readonly type: "object" }
  readonly outputSchema?: JsonObject
  readonly annotations?: ToolAnnotations
  readonly execution?: { readonly taskSupport?: "forbidden" | "optional" | "required" }
  readonly icons?: ReadonlyArray<Icon>
  readonly _meta?: Meta
}

/** The result of a tool. */
export interface CallToolResult {
  readonly content: ReadonlyArray<ContentBlock>
  /** The result as JSON, of a tool with an output schema. */
  readonly structuredContent?: unknown
  /** The tool has failed. The content says why, for the model. */
  readonly isError?: boolean
  readonly _meta?: Meta
}

/** A prompt that a server lists. */
export interface Prompt {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly arguments?: ReadonlyArray<PromptArgument>
  readonly icons?: ReadonlyArray<Icon>
  readonly _meta?: Meta
}

/** An argument of a prompt. */
export interface PromptArgument {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly required?: boolean
}

/** A message of a prompt. */
export interface PromptMessage {
  readonly role: Role
  readonly content: ContentBlock
}

/** The messages of a prompt. */
export interface GetPromptResult {
  readonly description?: string
  readonly messages: ReadonlyArray<PromptMessage>
  readonly _meta?: Meta
}

/** The contents of a resource. */
export interface ReadResourceResult {
  readonly contents: ReadonlyArray<ResourceContents>
  /** How long it is fresh, in milliseconds. */
  readonly ttlMs?: number
  /** Whether it may be shared between all callers. */
  readonly cacheScope?: "public" | "private"
  readonly _meta?: Meta
}

/** The suggestions for an argument: at most 100. */
export interface CompleteResult {
  readonly completion: {
    readonly values: ReadonlyArray<string>
    /** The number of all suggestions. */
    readonly total?: number
    readonly hasMore?: boolean
  }
  readonly _meta?: Meta
}

/** A folder that the user has opened to the server. */
export interface Root {
  /** A `file:` URL. */
  readonly uri: string
  readonly name?: string
  readonly _meta?: Meta
}

/** A value that a user enters into a form. */
export type ElicitValue = string | number | boolean | ReadonlyArray<string>

/** The answer of a user to a question. */
export interface ElicitResult {
  readonly action: "accept" | "decline" | "cancel"
  readonly content?: { readonly [field: string]: ElicitValue }
  readonly _meta?: Meta
}

/** A model asks for the result of a tool. */
export interface ToolUseContent {
  readonly type: "tool_use"
  readonly id: string
  readonly name: string
  readonly input: JsonObject
  readonly _meta?: Meta
}

/** The result of a tool, for a model. */
export interface ToolResultContent {
  readonly type: "tool_result"
  readonly toolUseId: string
  readonly content: ReadonlyArray<ContentBlock>
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: Meta
}

/** A part of a message to or from a model. */
export type SamplingMessageContentBlock =
  | TextContent
  | ImageContent
  | AudioContent
  | ToolUseContent
  | ToolResultContent

/** A message to or from a model. */
export interface SamplingMessage {
  readonly role: Role
  readonly content: SamplingMessageContentBlock | ReadonlyArray<SamplingMessageContentBlock>
  readonly _meta?: Meta
}

/** The wishes of a server about the model. Priorities are from 0 to 1. */
export interface ModelPreferences {
  readonly hints?: ReadonlyArray<{ readonly name?: string }>
  readonly costPriority?: number
  readonly speedPriority?: number
  readonly intelligencePriority?: number
}

/** A request to the client's model. */
export interface CreateMessageRequestParams {
  readonly messages: ReadonlyArray<SamplingMessage>
  readonly modelPreferences?: ModelPreferences
  readonly systemPrompt?: string
  readonly includeContext?: "none" | "thisServer" | "allServers"
  readonly temperature?: number
  readonly maxTokens: number
  readonly stopSequences?: ReadonlyArray<string>
  readonly metadata?: JsonObject
  readonly tools?: ReadonlyArray<Tool>
  readonly toolChoice?: { readonly mode?: "auto" | "required" | "none" }
  readonly _meta?: Meta
}

/** The answer of a model. */
export interface CreateMessageResult {
  readonly role: Role
  readonly content: SamplingMessageContentBlock | ReadonlyArray<SamplingMessageContentBlock>
  /** The name of the model. */
  readonly model: string
  readonly stopReason?: string
  readonly _meta?: Meta
}

/** The severity of a log message (RFC 5424), the lowest first. */
export type LoggingLevel =
  | "debug"
  | "info"
  | "notice"
  | "warning"
  | "error"
  | "critical"
  | "alert"
  | "emergency"

/** A log message of a server. */
export interface LoggingMessage {
  readonly level: LoggingLevel
  readonly logger?: string
  readonly data: unknown
  readonly _meta?: Meta
}

/** How far a request has come. */
export interface Progress {
  /** It increases with each report. */
  readonly progress: number
  /** The value of `progress` at the end. */
  readonly total?: number | undefined
  readonly message?: string | undefined
}
