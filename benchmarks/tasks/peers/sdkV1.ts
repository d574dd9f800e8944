/**
 * The experimental tasks of `@modelcontextprotocol/sdk` 1 in memory, with a server and its client in one process. The
 * tool completes immediately, which is the best case for a client that polls.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore
} from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js"
import { burst, type Execute, runCommandLoop } from "../commandLoop.ts"
import { done } from "../commands.ts"

const client = new Client({ name: "bench", version: "1.0.0" }, { capabilities: {} })

const open = async (): Promise<void> => {
  const capabilities = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }
  const server = new McpServer({ name: "bench", version: "1.0.0" }, {
    capabilities,
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue()
  })
  server.experimental.tasks.registerToolTask("plain", { execution: { taskSupport: "optional" }, inputSchema: {} }, {
    createTask: async (_, { taskRequestedTtl, taskStore }) => {
      const ttl = taskRequestedTtl === undefined ? {} : { ttl: taskRequestedTtl }
      const task = await taskStore.createTask({ pollInterval: 10, ...ttl })
      void taskStore.storeTaskResult(task.taskId, "completed", { content: [{ type: "text", text: done }] })
      return { task }
    },
    getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
    getTaskResult: async (_, { taskId, taskStore }) => await taskStore.getTaskResult(taskId) as CallToolResult
  })
  const [clientTransport, serverTransport] = InMemoryTransport.createLinkedPair()
  await server.connect(serverTransport)
  await client.connect(clientTransport)
  await client.listTools()
}

const task = async (): Promise<void> => {
  const stream = client.experimental.tasks.callToolStream({ name: "plain", arguments: {} }, undefined, { task: {} })
  for await (const message of stream) {
    if (message.type === "error") throw message.error
    if (message.type !== "result") continue
    const [content] = message.result.content as ReadonlyArray<{ readonly text?: unknown }>
    if (content?.text !== done) throw new Error(`the task ended with ${JSON.stringify(message.result)}`)
  }
}

const execute: Execute = async (command) => {
  if (command.do === "open") return open()
  if (command.do !== "burst") return undefined
  return burst(command.millis, async (next) => {
    const worker = async (): Promise<void> => {
      while (next()) await task()
    }
    await Promise.all(Array.from({ length: command.inFlight }, worker))
  })
}

runCommandLoop(execute)
