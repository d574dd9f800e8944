/** Starts a published server that listens on a port, as a process of its own. */
import { spawn } from "node:child_process"
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import type { Command } from "./readings.ts"

/** How many seconds a server may take until it listens. */
const startSeconds = 60

/** A running server. */
export interface Remote {
  readonly stop: () => Promise<void>
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    const settle = (accepted: boolean) => {
      socket.destroy()
      resolve(accepted)
    }
    socket.once("connect", () => settle(true))
    socket.once("error", () => settle(false))
  })

/** Starts a server and waits until it accepts connections on the port. */
export const startRemote = async ({ args, command, cwd, env }: Command, port: number): Promise<Remote> => {
  // It leads a process group, since some servers start further processes. Some end with their stdin.
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] })
  let output = ""
  const keep = (chunk: string) => {
    output = (output + chunk).slice(-2_000)
  }
  child.stdout.setEncoding("utf8").on("data", keep)
  child.stderr.setEncoding("utf8").on("data", keep)
  let ended = false
  const exit = new Promise<void>((resolve) =>
    child.once("close", () => {
      ended = true
      resolve()
    })
  )
  const stop = async () => {
    try {
      process.kill(-child.pid!, "SIGKILL")
    } catch {
      // The group has ended.
    }
    await exit
  }
  const until = Date.now() + startSeconds * 1_000
  while (!await accepts(port)) {
    if (ended || Date.now() > until) {
      await stop()
      throw new Error(`the server ${ended ? "ended" : "did not listen"}: ${output}`)
    }
    await sleep(100)
  }
  return { stop }
}
