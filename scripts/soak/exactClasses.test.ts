import { describe, expect, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { exactClasses } from "./server/soakServer.ts"

/** The names of the classes that these files declare. */
const classesOf = (files: ReadonlyArray<string>): ReadonlyArray<string> =>
  files.flatMap((file) => [...readFileSync(file, "utf8").matchAll(/\bclass (\w+)/g)].map(([, name]) => name!))

/** The names of classes of Node, of which the soak counts objects. */
const nodeClasses = (): ReadonlyArray<string> => {
  const timeout = setTimeout(() => {}, 0)
  const immediate = setImmediate(() => {})
  clearTimeout(timeout)
  clearImmediate(immediate)
  return [Socket.name, ServerResponse.name, IncomingMessage.name, timeout.constructor.name, immediate.constructor.name]
}

describe("soak of the server", () => {
  const root = new URL("../../", import.meta.url).pathname

  it.each(exactClasses.skein)("counts objects of the class %s, which Skein declares", (name) => {
    expect(classesOf(globSync(`${root}packages/{server,runtime}/src/**/*.ts`))).toContain(name)
  })

  it.each(exactClasses.effect)("counts objects of the class %s, which Effect declares", (name) => {
    expect(classesOf([`${root}node_modules/effect/src/internal/effect.ts`])).toContain(name)
  })

  it.each(exactClasses.node)("counts objects of the class %s, which Node has", (name) => {
    expect(nodeClasses()).toContain(name)
  })
})
