import type { Revision } from "../Revision.ts"

/** A revision, or the extension `io.modelcontextprotocol/tasks`, which has a schema of its own. */
export type Source = Revision | "tasks"
