/** Skein over `node:http`. */
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Connect } from "../face.ts"
import { over } from "../skein.ts"

export const connect: Connect = over(NodeHttp.transport)
