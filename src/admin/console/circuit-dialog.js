/** The dialog that holds a circuit open or closed for a time, or releases it. */

import { callApi } from './connection.js';
import { field, openFormDialog, radioOption, reasonField, showNotice } from './dialogs.js';
import { formatTime, h } from './dom.js';
import { confirmationField, isProduction, requireConfirmation } from './production.js';

const holdTimes = [
  ['10min', '10 minutes'],
  ['30min', '30 minutes'],
  ['1h', '1 hour'],
  ['4h', '4 hours'],
  ['24h', '24 hours'],
];

export function openHold({ environment, lane, hold }) {
  const time = h(
    'select',
    { id: 'for', name: 'for' },
    ...holdTimes.map(([value, label]) => h('option', { value }, label)),
  );
  const actions = h(
    'fieldset',
    {},
    h('legend', {}, 'Action'),
    radioOption('hold', 'open', 'Hold open: refuse all calls'),
    radioOption('hold', 'closed', 'Hold closed: send all calls, regardless of failures'),
    hold === null
      ? ''
      : radioOption('hold', 'release', 'Release: return to automatic control', { checked: true }),
  );
  const confirmation = confirmationField(environment);
  const isRelease = () => actions.querySelector('input:checked')?.value === 'release';
  const showConfirmation = () => requireConfirmation(confirmation, isProduction(environment) && !isRelease());
  actions.addEventListener('change', showConfirmation);
  showConfirmation();
  return openFormDialog({
    title: `Hold circuit: ${environment}, ${lane}`,
    button: 'Apply',
    body: [
      actions,
      field('Duration', time, 'The hold expires automatically. It applies to all instances.'),
      reasonField(),
      confirmation,
    ],
    send: ({ confirm, ...values }) =>
      callApi('PUT', `/circuits/${encodeURIComponent(environment)}/${lane}`, {
        ...values,
        hold: values.hold === 'release' ? null : values.hold,
      }),
    done(circuit) {
      showNotice(
        circuit.hold
          ? `${environment}: ${lane} circuit held ${circuit.hold} until ${formatTime(circuit.until)}.`
          : `${environment}: ${lane} circuit released.`,
      );
    },
  });
}
