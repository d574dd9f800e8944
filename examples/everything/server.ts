/**
 * A server that offers one of everything: what the official conformance suite looks for, written with nothing but the public API.
 *
 * Names and texts are the suite's, which is why they read like a test.
 */
import * as McpServer from "@skein/server/McpServer"
import { asking } from "./asking.ts"
import { changing } from "./changing.ts"
import { content } from "./content.ts"
import { polling } from "./polling.ts"
import { prompts } from "./prompts.ts"
import { resources } from "./resources.ts"
import { rounds } from "./rounds.ts"
import { schema } from "./schema.ts"
import { tasks } from "./tasks.ts"
import { telling } from "./telling.ts"

export const Everything = McpServer.layer(
  { name: "everything", version: "1.0.0", title: "Everything" },
  content,
  schema,
  telling,
  asking,
  rounds,
  changing,
  polling,
  resources,
  prompts,
  tasks
)
