/**
 * Results of a client's requests that are not among the messages of every program: pages of lists, capabilities, tasks.
 */
import type {
  CreateMessageRequestParams,
  JsonObject,
  Meta,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool
} from "../base/messages.ts"
import type { RequestedSchema } from "./forms.ts"

/** A page of a list. */
interface Page {
  /** The position of the next page, for the option `cursor`. Absent on the last page. */
  readonly nextCursor?: string
  /** How long the page is fresh, in milliseconds. */
  readonly ttlMs?: number
  /** Whether a cache that several users share may store the page. */
  readonly cacheScope?: "public" | "private"
  readonly _meta?: Meta
}

/** A page of tools. */
export interface ListToolsResult extends Page {
  readonly tools: ReadonlyArray<Tool>
}

/** A page of resources. */
export interface ListResourcesResult extends Page {
  readonly resources: ReadonlyArray<Resource>
}

/** A page of resource templates. */
export interface ListResourceTemplatesResult extends Page {
  readonly resourceTemplates: ReadonlyArray<ResourceTemplate>
}

/** A page of prompts. */
export interface ListPromptsResult extends Page {
  readonly prompts: ReadonlyArray<Prompt>
}

/** A task in a list of tasks. */
export interface ListedTask {
  readonly taskId: string
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled"
  /** One line about the status, for people or for the model. */
  readonly statusMessage?: string
  /** An ISO 8601 date and time. */
  readonly createdAt: string
  /** An ISO 8601 date and time. */
  readonly lastUpdatedAt: string
  /** How long the task is retained, in milliseconds from its creation; `null` for no limit. */
  readonly ttlMs: number | null
  /** How long to wait between two polls, in milliseconds. */
  readonly pollIntervalMs?: number
}

/** A page of tasks (2025-11-25). */
export interface ListTasksResult {
  readonly tasks: ReadonlyArray<ListedTask>
  readonly nextCursor?: string
  readonly _meta?: Meta
}

/** Settings of a capability that a server declares. */
interface Listed {
  readonly listChanged?: boolean
}

/** The capabilities that a server declares. */
export interface ServerCapabilities {
  readonly tools?: Listed
  readonly resources?: Listed & { readonly subscribe?: boolean }
  readonly prompts?: Listed
  readonly logging?: JsonObject
  readonly completions?: JsonObject
  /** Tasks of 2025-11-25. */
  readonly tasks?: {
    readonly list?: JsonObject
    readonly cancel?: JsonObject
    readonly requests?: { readonly tools?: { readonly call?: JsonObject } }
  }
  readonly experimental?: { readonly [name: string]: JsonObject }
  /** Extensions by their identifiers, with their settings. */
  readonly extensions?: { readonly [extension: string]: JsonObject }
}

/** One input request of a server: a form, a URL to visit, a request to the model, or one for roots. */
export type InputRequest =
  | {
    readonly method: "elicitation/create"
    readonly params:
      | { readonly mode?: "form"; readonly message: string; readonly requestedSchema: RequestedSchema }
      | {
        readonly mode: "url"
        readonly message: string
        readonly url: string
        readonly elicitationId?: string
      }
  }
  | { readonly method: "sampling/createMessage"; readonly params: CreateMessageRequestParams }
  | { readonly method: "roots/list"; readonly params?: { readonly _meta?: Meta } }

/** Input requests, by keys that the server chooses. */
export interface InputRequests {
  readonly [key: string]: InputRequest
}

/** The result with which a server asks for input. */
export interface InputRequiredResult {
  readonly resultType: "input_required"
  readonly inputRequests?: InputRequests
  /** State for the server, to be returned unchanged. */
  readonly requestState?: string
  readonly _meta?: Meta
}
