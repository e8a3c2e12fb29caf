import { defineBatch } from '../kit/batch.ts';

defineBatch('test/integration/**/!(redis-*|[!m-r]*).test.ts');
