/**
 * A server with one of everything: the tools, resources and prompts that the official conformance suite expects,
 * written with the public API only. The names and texts are those of the suite.
 */
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Layer from "effect/Layer"
import { clientRequests } from "./clientRequests.ts"
import { content } from "./content.ts"
import { inputRequired } from "./inputRequired.ts"
import { inputSchemas } from "./inputSchemas.ts"
import { listChanges } from "./listChanges.ts"
import { notifications } from "./notifications.ts"
import { polling } from "./polling.ts"
import { prompts } from "./prompts.ts"
import { resources } from "./resources.ts"
import { skills } from "./skills.ts"
import { tasks } from "./tasks.ts"

/** The server without the engine of its tasks, such as for one that several processes share. */
export const EverythingWithoutTasks = McpServer.layer(
  { name: "everything", version: "1.0.0", title: "Everything" },
  content,
  inputSchemas,
  notifications,
  clientRequests,
  inputRequired,
  listChanges,
  polling,
  resources,
  prompts,
  skills,
  tasks
)

/** The server with tasks in memory. */
export const Everything = EverythingWithoutTasks.pipe(Layer.provide(MemoryTasks.layer()))
