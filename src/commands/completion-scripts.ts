/** The scripts that complete `penstock` in bash, zsh and fish. They ask `penstock complete` for the candidates (ADR 89). */

import { type CommandOutput, success } from './command-output.ts';

/** @param shell `bash`, `zsh` or `fish` */
export function completionScript(shell: string): CommandOutput {
  const script = scripts[shell] ?? '';
  return success(script.trimEnd().split('\n'), { shell, script });
}

const bash = `# bash completion for penstock. To try it: source <(penstock completion bash)
_penstock() {
  local IFS=$'\\n'
  local candidates
  candidates=$(penstock complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
  COMPREPLY=($(compgen -W "$candidates" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _penstock penstock
`;

const zsh = `#compdef penstock
# zsh completion for penstock. To try it: source <(penstock completion zsh)
_penstock() {
  local -a candidates
  candidates=(\${(f)"$(penstock complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  candidates=("\${(@)candidates/$'\\t'/:}")
  if (( \${#candidates} )) && [[ -n "$candidates[1]" ]]; then
    _describe -V command candidates
  else
    _files
  fi
}
if [[ "$funcstack[1]" == _penstock ]]; then
  _penstock "$@"
else
  compdef _penstock penstock
fi
`;

const fish = `# fish completion for penstock. To try it: penstock completion fish | source
function __penstock_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l candidates (penstock complete -- $words[2..-1] 2>/dev/null)
  if set -q candidates[1]
    printf '%s\\n' $candidates
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c penstock -f -a '(__penstock_complete)'
`;

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };
